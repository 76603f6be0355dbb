/* Custom operators for tests, against ONNX Runtime's C interface: entries of OrtApi by their place in the table. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  CreateStatus = 0, GetErrorMessage = 2, CreateEnv = 3, CreateSession = 7, Run = 9, CreateCustomOpDomain = 26, CustomOpDomain_Add = 27, AddCustomOpDomain = 28,
  CreateTensorWithDataAsOrtValue = 49, GetTensorMutableData = 51, CreateTensorTypeAndShapeInfo = 57, SetTensorElementType = 58,
  SetDimensions = 59, GetTensorElementType = 60, GetDimensionsCount = 61, GetDimensions = 62, GetTensorShapeElementCount = 64,
  GetTensorTypeAndShape = 65, CreateCpuMemoryInfo = 69, AllocatorAlloc = 75, AllocatorFree = 76, GetAllocatorWithDefaultOptions = 78,
  KernelInfoGetAttribute_float = 85, KernelInfoGetAttribute_int64 = 86, KernelInfoGetAttribute_string = 87,
  KernelContext_GetInputCount = 88, KernelContext_GetInput = 90, KernelContext_GetOutput = 91, ReleaseStatus = 93, ReleaseMemoryInfo = 94, ReleaseSession = 95,
  ReleaseValue = 96, ReleaseTensorTypeAndShapeInfo = 99, ReleaseCustomOpDomain = 101, GetStringTensorElementLength = 127,
  GetStringTensorElement = 128, FillStringTensorElement = 129, CreateIoBinding = 134, KernelInfoGetAttributeArray_float = 162,
  KernelInfoGetAttributeArray_int64 = 163, KernelContext_GetGPUComputeStream = 193, CreateOpAttr = 211, ReleaseOpAttr = 212, CreateOp = 213,
  InvokeOp = 214, ReleaseOp = 215, KernelInfo_GetInputCount = 230, KernelInfo_GetInputName = 232, KernelInfoGetAttribute_tensor = 236,
  KernelInfo_GetNodeName = 244, KernelInfo_GetLogger = 245, Logger_LogMessage = 247, KernelInfoGetConstantInput_tensor = 249,
  ShapeInferContext_GetInputTypeShape = 268, ShapeInferContext_GetAttribute = 269, ShapeInferContext_SetOutputTypeShape = 270,
  ReadOpAttr = 272, KernelContext_ParallelFor = 274, KernelContext_GetScratchBuffer = 277,
};
enum { FLOAT = 1, INT64 = 7, STRING = 8 };

typedef void *(*Function)();
typedef struct { void *(*get_api)(uint32_t); const char *(*version)(void); } Base;
typedef struct { uint32_t version; Function callbacks[25]; } Operator;
enum {
  CREATE, NAME, PROVIDER, IN_TYPE, IN_COUNT, OUT_TYPE, OUT_COUNT, COMPUTE, DESTROY, IN_KIND, OUT_KIND, IN_MEMORY, IN_LEAST, IN_SAME,
  OUT_LEAST, OUT_SAME, CREATE2, COMPUTE2, INFER, START, END
};

static Function *api;
static void *domain;
#define CALL(name, ...) (api[name](__VA_ARGS__))
#define TRY(call) do { void *status_ = (call); if (status_) return status_; } while (0)

/* A tensor: its address and number of elements. */
static void *look(void *value, void **data, int64_t *dims, size_t *rank, size_t *count) {
  void *info;
  TRY(CALL(GetTensorTypeAndShape, value, &info));
  TRY(CALL(GetDimensionsCount, info, rank));
  TRY(CALL(GetDimensions, info, dims, *rank));
  TRY(CALL(GetTensorShapeElementCount, info, count));
  CALL(ReleaseTensorTypeAndShapeInfo, info);
  if (data) TRY(CALL(GetTensorMutableData, value, data));
  return NULL;
}
static void *input(void *context, size_t index, float **x, int64_t *dims, size_t *rank, size_t *count) {
  void *value;
  TRY(CALL(KernelContext_GetInput, context, index, &value));
  return look(value, (void **)x, dims, rank, count);
}
static void *output(void *context, size_t index, const int64_t *dims, size_t rank, void **data) {
  void *value;
  TRY(CALL(KernelContext_GetOutput, context, index, dims, rank, &value));
  return CALL(GetTensorMutableData, value, data);
}
static void *text_output(void *context, size_t index, int64_t count, const char *const *texts) {
  void *value;
  TRY(CALL(KernelContext_GetOutput, context, index, &count, (size_t)1, &value));
  for (int64_t i = 0; i < count; i++) TRY(CALL(FillStringTensorElement, value, texts[i], (size_t)i));
  return NULL;
}

/* Scale, by the first version of kernels: y = factor * x + offset. */
typedef struct { float factor; int64_t offset; } Scale;
static void *scale_create(Operator *op, Function *table, void *info) {
  Scale *kernel = malloc(sizeof *kernel);
  CALL(KernelInfoGetAttribute_float, info, "factor", &kernel->factor);
  CALL(KernelInfoGetAttribute_int64, info, "offset", &kernel->offset);
  return kernel;
}
static void scale_compute(Scale *kernel, void *context) {
  float *x, *y; int64_t dims[16]; size_t rank, count;
  if (input(context, 0, &x, dims, &rank, &count) || output(context, 0, dims, rank, (void **)&y)) return;
  for (size_t i = 0; i < count; i++) y[i] = kernel->factor * x[i] + (float)kernel->offset;
}
static void release(void *kernel) { free(kernel); }

/* Attributes: gives back one of each kind. */
typedef struct { char text[64]; float floats[8]; int64_t ints[8]; size_t float_count, int_count; float tensor[8]; size_t tensor_count; } All;
static void *attributes_create(Operator *op, Function *table, void *info, void **made) {
  All *kernel = calloc(1, sizeof *kernel);
  *made = kernel;
  size_t size = 0;
  TRY(CALL(KernelInfoGetAttribute_string, info, "text", NULL, &size));
  if (size > sizeof kernel->text) return CALL(CreateStatus, 1, "the text is too long");
  TRY(CALL(KernelInfoGetAttribute_string, info, "text", kernel->text, &size));
  kernel->float_count = kernel->int_count = 0;
  TRY(CALL(KernelInfoGetAttributeArray_float, info, "floats", NULL, &kernel->float_count));
  TRY(CALL(KernelInfoGetAttributeArray_float, info, "floats", kernel->floats, &kernel->float_count));
  TRY(CALL(KernelInfoGetAttributeArray_int64, info, "ints", NULL, &kernel->int_count));
  TRY(CALL(KernelInfoGetAttributeArray_int64, info, "ints", kernel->ints, &kernel->int_count));
  void *allocator, *value, *data; int64_t dims[16]; size_t rank;
  TRY(CALL(GetAllocatorWithDefaultOptions, &allocator));
  TRY(CALL(KernelInfoGetAttribute_tensor, info, "tensor", allocator, &value));
  TRY(look(value, &data, dims, &rank, &kernel->tensor_count));
  memcpy(kernel->tensor, data, 4 * kernel->tensor_count);
  CALL(ReleaseValue, value);
  float missing;
  void *status = CALL(KernelInfoGetAttribute_float, info, "no_such_attribute", &missing);
  if (!status) return CALL(CreateStatus, 1, "an attribute that is not there was found");
  CALL(ReleaseStatus, status);
  return NULL;
}
static void *attributes_compute(All *kernel, void *context) {
  const char *texts[] = {kernel->text}; void *y; int64_t n = kernel->float_count, m = kernel->int_count, k = kernel->tensor_count;
  TRY(text_output(context, 0, 1, texts));
  TRY(output(context, 1, &n, 1, &y)); memcpy(y, kernel->floats, 4 * n);
  TRY(output(context, 2, &m, 1, &y)); memcpy(y, kernel->ints, 8 * m);
  TRY(output(context, 3, &k, 1, &y)); memcpy(y, kernel->tensor, 4 * k);
  return NULL;
}

static void *nothing_create(Operator *op, Function *table, void *info, void **made) { *made = malloc(1); return NULL; }

/* AddAll: the sum of any number of tensors of one shape, at least two. */
static void *add_all_compute(void *kernel, void *context) {
  size_t inputs, rank, count; float *x, *y; int64_t dims[16];
  TRY(CALL(KernelContext_GetInputCount, context, &inputs));
  TRY(input(context, 0, &x, dims, &rank, &count));
  TRY(output(context, 0, dims, rank, (void **)&y));
  memset(y, 0, 4 * count);
  for (size_t i = 0; i < inputs; i++) {
    TRY(input(context, i, &x, dims, &rank, &count));
    for (size_t j = 0; j < count; j++) y[j] += x[j];
  }
  return NULL;
}

/* AddOptional: x + b, or x where b is left out, by way of memory of an allocator and scratch memory. */
static void *add_optional_compute(void *kernel, void *context) {
  size_t rank, count; float *x, *b, *y, *scratch, *memory; int64_t dims[16]; void *value, *allocator, *info, *stream = &rank;
  TRY(CALL(KernelContext_GetGPUComputeStream, context, &stream));
  if (stream) return CALL(CreateStatus, 1, "there is a stream");
  TRY(input(context, 0, &x, dims, &rank, &count));
  TRY(CALL(CreateCpuMemoryInfo, 0, 0, &info));
  TRY(CALL(KernelContext_GetScratchBuffer, context, info, 4 * count, &scratch));
  CALL(ReleaseMemoryInfo, info);
  TRY(CALL(GetAllocatorWithDefaultOptions, &allocator));
  TRY(CALL(AllocatorAlloc, allocator, 4 * count, &memory));
  memcpy(scratch, x, 4 * count);
  memcpy(memory, scratch, 4 * count);
  TRY(output(context, 0, dims, rank, (void **)&y));
  memcpy(y, memory, 4 * count);
  TRY(CALL(AllocatorFree, allocator, memory));
  size_t inputs;
  TRY(CALL(KernelContext_GetInputCount, context, &inputs));
  if (inputs < 2) return NULL;
  TRY(CALL(KernelContext_GetInput, context, (size_t)1, &value));
  if (!value) return NULL;
  TRY(look(value, (void **)&b, dims, &rank, &count));
  for (size_t i = 0; i < count; i++) y[i] += b[i];
  return NULL;
}

/* Refuse: a status of the code that its attribute names, from the kernel or already when it is made. */
static void *refuse_create(Operator *op, Function *table, void *info, void **made) {
  int64_t *kernel = malloc(8), early = 0;
  *made = kernel;
  TRY(CALL(KernelInfoGetAttribute_int64, info, "code", kernel));
  void *status = CALL(KernelInfoGetAttribute_int64, info, "early", &early);
  if (status) CALL(ReleaseStatus, status);
  return early ? CALL(CreateStatus, (int)*kernel, "refused when it was made") : NULL;
}
static void *refuse_compute(int64_t *kernel, void *context) { return CALL(CreateStatus, (int)*kernel, "the value is negative"); }

/* Unfilled: calls what no kernel has a use for. */
static void *unfilled_compute(void *kernel, void *context) { void *out; return CALL(CreateIoBinding, NULL, &out); }

/* Inner: what the model of its attribute "path" makes of its input. */
static void *inner_create(Operator *op, Function *table, void *info, void **made) {
  char path[1024]; size_t size = sizeof path; void *env;
  TRY(CALL(KernelInfoGetAttribute_string, info, "path", path, &size));
  TRY(CALL(CreateEnv, 2, "inner", &env));
  return CALL(CreateSession, env, path, NULL, made);
}
static void *inner_compute(void *kernel, void *context) {
  size_t rank, count; float *x; int64_t dims[16]; void *in, *out; const char *names[] = {"x"}, *made[] = {"y"};
  TRY(input(context, 0, &x, dims, &rank, &count));
  TRY(CALL(KernelContext_GetInput, context, (size_t)0, &in));
  TRY(CALL(KernelContext_GetOutput, context, (size_t)0, dims, rank, &out));
  return CALL(Run, kernel, NULL, names, &in, (size_t)1, made, (size_t)1, &out);
}
static void inner_destroy(void *kernel) { CALL(ReleaseSession, kernel); }

/* Twice: every element two times, in parallel; says its shape. */
typedef struct { const float *x; float *y; } Pair;
static void twice_task(void *data, size_t index) { Pair *pair = data; pair->y[index] = pair->x[index / 2]; }
static void *twice_compute(void *kernel, void *context) {
  size_t rank, count; float *x; int64_t dims[16]; Pair pair;
  TRY(input(context, 0, &x, dims, &rank, &count));
  dims[0] *= 2;
  TRY(output(context, 0, dims, rank, (void **)&pair.y));
  pair.x = x;
  return CALL(KernelContext_ParallelFor, context, twice_task, 2 * count, (size_t)2, &pair);
}
static void *twice_infer(Operator *op, void *context) {
  void *in, *out, *attribute; size_t rank, used; int64_t dims[16], number; int type;
  TRY(CALL(ShapeInferContext_GetInputTypeShape, context, (size_t)0, &in));
  TRY(CALL(GetDimensionsCount, in, &rank));
  TRY(CALL(GetDimensions, in, dims, rank));
  TRY(CALL(GetTensorElementType, in, &type));
  TRY(CALL(ShapeInferContext_GetAttribute, context, "times", &attribute));
  TRY(CALL(ReadOpAttr, attribute, 1, &number, sizeof number, &used));
  if (rank && dims[0] >= 0) dims[0] *= number;
  TRY(CALL(CreateTensorTypeAndShapeInfo, &out));
  TRY(CALL(SetTensorElementType, out, type));
  TRY(CALL(SetDimensions, out, dims, rank));
  TRY(CALL(ShapeInferContext_SetOutputTypeShape, context, (size_t)0, out));
  CALL(ReleaseTensorTypeAndShapeInfo, out);
  return NULL;
}

/* Leaky: calls LeakyRelu of the runtime. */
static void *leaky_create(Operator *op, Function *table, void *info, void **made) {
  float alpha = 0.5f; void *attribute; const char *names[] = {"T"}; int types[] = {FLOAT};
  TRY(CALL(CreateOpAttr, "alpha", &alpha, 1, 3, &attribute));
  void *attributes[] = {attribute};
  TRY(CALL(CreateOp, info, "LeakyRelu", "", 16, names, types, 1, attributes, 1, 1, 1, made));
  CALL(ReleaseOpAttr, attribute);
  return NULL;
}
static void *leaky_compute(void *op, void *context) {
  size_t rank, count; float *x; int64_t dims[16]; void *in, *out;
  TRY(CALL(KernelContext_GetInput, context, (size_t)0, &in));
  TRY(look(in, (void **)&x, dims, &rank, &count));
  TRY(CALL(KernelContext_GetOutput, context, (size_t)0, dims, rank, &out));
  void *inputs[] = {in}, *outputs[] = {out};
  return CALL(InvokeOp, context, op, inputs, 1, outputs, 1);
}
static void leaky_destroy(void *op) { CALL(ReleaseOp, op); }

/* Shout: texts with "!" behind, one by one. */
static void *shout_compute(void *kernel, void *context) {
  size_t rank, count, length; int64_t dims[16]; void *in, *out; char text[256];
  TRY(CALL(KernelContext_GetInput, context, (size_t)0, &in));
  TRY(look(in, NULL, dims, &rank, &count));
  TRY(CALL(KernelContext_GetOutput, context, (size_t)0, dims, rank, &out));
  for (size_t i = 0; i < count; i++) {
    TRY(CALL(GetStringTensorElementLength, in, i, &length));
    if (length > 250) return CALL(CreateStatus, 2, "the text is too long");
    TRY(CALL(GetStringTensorElement, in, length, i, text));
    strcpy(text + length, "!");
    TRY(CALL(FillStringTensorElement, out, text, i));
  }
  return NULL;
}

/* Facts: the node's name, its first input's name, and the first element of its constant second input. */
typedef struct { char name[64], input[64], constant[64]; } Facts;
static void *facts_create(Operator *op, Function *table, void *info, void **made) {
  Facts *kernel = calloc(1, sizeof *kernel); size_t size = 64, other = 64; int is_constant; void *value, *logger; float *data;
  *made = kernel;
  TRY(CALL(KernelInfo_GetNodeName, info, kernel->name, &size));
  TRY(CALL(KernelInfo_GetInputName, info, (size_t)0, kernel->input, &other));
  TRY(CALL(KernelInfoGetConstantInput_tensor, info, (size_t)1, &is_constant, &value));
  if (is_constant) {
    TRY(CALL(GetTensorMutableData, value, &data));
    snprintf(kernel->constant, 64, "%.1f", *data);
  }
  TRY(CALL(KernelInfo_GetLogger, info, &logger));
  return CALL(Logger_LogMessage, logger, 2, "a message of the library", "custom_ops.c", 1, "facts_create");
}
static void *facts_compute(Facts *kernel, void *context) {
  const char *texts[] = {kernel->name, kernel->input, kernel->constant};
  return text_output(context, 0, 3, texts);
}

/* Double: any type; x twice, element by element of 4 bytes. */
static void *same_compute(void *kernel, void *context) {
  void *in, *out, *x, *y; size_t rank, count, bytes; int64_t dims[16];
  TRY(CALL(KernelContext_GetInput, context, (size_t)0, &in));
  TRY(look(in, &x, dims, &rank, &count));
  TRY(CALL(318, in, &bytes));
  TRY(CALL(KernelContext_GetOutput, context, (size_t)0, dims, rank, &out));
  TRY(CALL(GetTensorMutableData, out, &y));
  memcpy(y, x, bytes);
  return NULL;
}

/* Descriptions */
static size_t one(void *op) { return 1; }
static size_t two(void *op) { return 2; }
static size_t four(void *op) { return 4; }
static int is_float(void *op, size_t index) { return FLOAT; }
static int is_text(void *op, size_t index) { return STRING; }
static int is_open(void *op, size_t index) { return 0; }
static int attribute_type(void *op, size_t index) { return index == 0 ? STRING : index == 2 ? INT64 : FLOAT; }
static int required(void *op, size_t index) { return 0; }
static int second_optional(void *op, size_t index) { return index == 1; }
static int variadic(void *op, size_t index) { return 2; }
static int default_memory(void *op, size_t index) { return 0; }
static int least_two(void *op) { return 2; }
static int homogeneous(void *op) { return 1; }
static int first_version(void *op) { return 1; }
static int last_version(void *op) { return 2147483647; }

#define NAMED(symbol) static const char *symbol##_name(void *op) { return #symbol; }
NAMED(Scale) NAMED(Attributes) NAMED(AddAll) NAMED(AddOptional) NAMED(Refuse) NAMED(Unfilled) NAMED(Inner) NAMED(Twice) NAMED(Leaky) NAMED(Shout) NAMED(Facts)
NAMED(Same)
#define F(f) ((Function)(f))
#define SECOND(create, compute, infer) \
  [CREATE2] = F(create), [COMPUTE2] = F(compute), [INFER] = F(infer), [START] = F(first_version), [END] = F(last_version), \
  [OUT_KIND] = F(required), [IN_MEMORY] = F(default_memory), [IN_LEAST] = F(least_two), [IN_SAME] = F(homogeneous), \
  [OUT_LEAST] = F(homogeneous), [OUT_SAME] = F(homogeneous), [DESTROY] = F(release)
#define TYPES(name, in, inputs, out, outputs) \
  [NAME] = F(name##_name), [IN_TYPE] = F(in), [IN_COUNT] = F(inputs), [OUT_TYPE] = F(out), [OUT_COUNT] = F(outputs)
static const char *no_provider(void *op) { return NULL; }
static const char *device_provider(void *op) { return "CUDAExecutionProvider"; }
NAMED(OnDevice) NAMED(Old)
static int old_version(void *op) { return 2; }

static Operator operators[] = {
  {8, {TYPES(Scale, is_float, one, is_float, one), [PROVIDER] = F(no_provider), [CREATE] = F(scale_create), [COMPUTE] = F(scale_compute), [DESTROY] = F(release),
       [IN_KIND] = F(required), [OUT_KIND] = F(required), [IN_MEMORY] = (Function)1, [CREATE2] = (Function)1, [COMPUTE2] = (Function)1}},
  {17, {TYPES(Attributes, is_float, one, attribute_type, four), [PROVIDER] = F(no_provider), [IN_KIND] = F(required), SECOND(attributes_create, attributes_compute, NULL)}},
  {17, {TYPES(AddAll, is_float, one, is_float, one), [PROVIDER] = F(no_provider), [IN_KIND] = F(variadic), SECOND(nothing_create, add_all_compute, NULL)}},
  {17, {TYPES(AddOptional, is_float, two, is_float, one), [PROVIDER] = F(no_provider), [IN_KIND] = F(second_optional), SECOND(nothing_create, add_optional_compute, NULL)}},
  {17, {TYPES(Refuse, is_float, one, is_float, one), [PROVIDER] = F(no_provider), [IN_KIND] = F(required), SECOND(refuse_create, refuse_compute, NULL)}},
  {17, {TYPES(Unfilled, is_float, one, is_float, one), [PROVIDER] = F(no_provider), [IN_KIND] = F(required), SECOND(nothing_create, unfilled_compute, NULL)}},
  {17, {TYPES(Twice, is_float, one, is_float, one), [PROVIDER] = F(no_provider), [IN_KIND] = F(required), SECOND(nothing_create, twice_compute, twice_infer)}},
  {17, {TYPES(Leaky, is_float, one, is_float, one), [PROVIDER] = F(no_provider), [IN_KIND] = F(required), SECOND(leaky_create, leaky_compute, NULL)}},
  {17, {TYPES(Shout, is_text, one, is_text, one), [PROVIDER] = F(no_provider), [IN_KIND] = F(required), SECOND(nothing_create, shout_compute, NULL)}},
  {17, {TYPES(Facts, is_float, two, is_text, one), [PROVIDER] = F(no_provider), [IN_KIND] = F(required), SECOND(facts_create, facts_compute, NULL)}},
  {17, {TYPES(Same, is_open, one, is_open, one), [PROVIDER] = F(no_provider), [IN_KIND] = F(required), SECOND(nothing_create, same_compute, NULL)}},
  {17, {TYPES(Old, is_float, one, is_float, one), [PROVIDER] = F(no_provider), [IN_KIND] = F(required), SECOND(nothing_create, same_compute, NULL), [END] = F(old_version)}},
  {17, {TYPES(Inner, is_float, one, is_float, one), [PROVIDER] = F(no_provider), [IN_KIND] = F(required), SECOND(inner_create, inner_compute, NULL)}},
  {17, {TYPES(OnDevice, is_float, one, is_float, one), [PROVIDER] = F(device_provider), [IN_KIND] = F(required), SECOND(nothing_create, same_compute, NULL)}},
};

void *RegisterCustomOps(void *options, const Base *base) {
  api = base->get_api(18);
  if (!api || base->get_api(1000)) return NULL;
  operators[7].callbacks[DESTROY] = F(leaky_destroy);
  operators[12].callbacks[DESTROY] = F(inner_destroy);
  TRY(CALL(CreateCustomOpDomain, "test.ops", &domain));
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) TRY(CALL(CustomOpDomain_Add, domain, &operators[i]));
  return CALL(AddCustomOpDomain, options, domain);
}

#ifdef EXIT_RELEASES
__attribute__((destructor)) static void leave(void) { if (domain) CALL(ReleaseCustomOpDomain, domain); }
#endif
