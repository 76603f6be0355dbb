// Custom operators whose callbacks throw: what is thrown is said by the input's first element.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
typedef void *(*Function)(...);
static Function *api;
struct Guard { int *count; ~Guard() { ++*count; } };
static int destroyed = 0;
struct Odd {};
static void fail(float number) {
  Guard guard = {&destroyed};
  if (number == 1) throw std::runtime_error("the text of the error");
  if (number == 2) throw 7;
  if (number == 3) throw Odd();
  if (number == 4) std::string().at(3);
}
static void *run(void *context) {
  void *in, *out; float *x, *y; int64_t dims[1] = {1};
  if (void *status = api[90](context, (size_t)0, &in)) return status;
  if (void *status = api[51](in, &x)) return status;
  if (void *status = api[91](context, (size_t)0, dims, (size_t)1, &out)) return status;
  if (void *status = api[51](out, &y)) return status;
  fail(x[0]);
  y[0] = destroyed;
  return nullptr;
}
extern "C" {
static void *compute2(void *, void *context) { return run(context); }
static void compute(void *, void *context) { run(context); }
static void part(void *, size_t index) { fail(index == 2 ? 1 : 0); }
static void *parallel(void *, void *context) { run(context); return api[274](context, part, (size_t)4, (size_t)2, nullptr); }
static void *create2(void *, void *, void *, void **kernel) { *kernel = nullptr; return nullptr; }
static void *create(void *, void *, void *) { return nullptr; }
static void *create_throws(void *, void *, void *, void **) { throw std::logic_error("no kernel today"); }
static const char *name(void *op);
static const char *provider(void *) { return nullptr; }
static int type(void *, size_t) { return 1; }
static size_t one(void *) { return 1; }
static int zero(void *, size_t) { return 0; }
static int first(void *) { return 1; }
static int last(void *) { return 2147483647; }
static void destroy(void *) {}
}
struct Operator { uint32_t version; void *callbacks[25]; const char *name; };
#define F(f) (void *)(f)
#define REST(c, k, c2, k2) {F(c), F(name), F(provider), F(type), F(one), F(type), F(one), F(k), F(destroy), F(zero), F(zero), F(zero), \
  F(first), F(first), F(first), F(first), F(c2), F(k2), nullptr, F(first), F(last)}
static Operator ops[] = {{17, REST(nullptr, nullptr, create2, compute2), "Throws"},
                         {17, REST(create, compute, nullptr, nullptr), "ThrowsWithoutStatus"},
                         {17, REST(nullptr, nullptr, create2, parallel), "ThrowsInParallel"},
                         {17, REST(nullptr, nullptr, create_throws, compute2), "ThrowsWhenMade"}};
static const char *name(void *op) { return ((Operator *)op)->name; }
extern "C" void *RegisterCustomOps(void *options, void **base) {
  api = ((Function * (*)(uint32_t)) base[0])(17);
  void *domain;
  if (void *status = api[26]("throwing", &domain)) return status;
  for (Operator &op : ops)
    if (void *status = api[27](domain, &op)) return status;
  return api[28](options, domain);
}
