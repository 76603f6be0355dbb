"""Schemas of operators outside the standard that real models contain: com.microsoft, and one that ONNX Runtime puts in ai.onnx.

Each line of the table is a signature:

    MatMulNBits(A:T1 B:T2 scales:T1 zero_points:T3?) -> Y:T1 | K:INT! N:INT! bits:INT=4

`?` marks an optional parameter, `*` a variadic one, `+` one whose types may differ, `!` a required attribute. A type with
brackets is a type string; any other is a type variable. Nodes may carry further attributes: newer ONNX Runtimes add some.
"""

from __future__ import annotations

import ast

from sardonyx.ir import AttributeKind
from sardonyx.ops.schema import AttributeSchema, OpSchema, ParameterOption, ParameterSchema, TypeConstraint
from sardonyx.ops.schemas_tflite import DOMAIN, SIGNATURES

__all__ = ["CONTRIB_SCHEMAS", "OLDER_SCHEMAS"]

_UNBOUNDED = 2**31 - 1

_AI_ONNX = """
Affine(X:T) -> Y:T | alpha:FLOAT=1.0 beta:FLOAT=0.0
Crop(input:T) -> output:T | border:INTS! scale:INTS
DynamicSlice(data:T starts:Tind ends:Tind axes:Tind?) -> output:T |
ImageScaler(input:T) -> output:T | scale:FLOAT=1.0 bias:FLOATS
ParametricSoftplus(X:T) -> Y:T | alpha:FLOAT beta:FLOAT
Scale(input:T) -> output:T | scale:FLOAT=1.0
ScaledTanh(input:T) -> output:T | alpha:FLOAT beta:FLOAT
SimplifiedLayerNormalization(X:T scale:V) -> Y:V inv_std_var:U? | axis:INT=-1 epsilon:FLOAT=1e-05 stash_type:INT=1
"""

_AI_ONNX_BEFORE_THE_STANDARD = """
LayerNormalization(X:T Scale:V B:V?) -> Y:V Mean:U? InvStdDev:U? | axis:INT=-1 epsilon:FLOAT=1e-05 stash_type:INT=1
MeanVarianceNormalization(input:T) -> output:T | across_channels:INT=0 normalize_variance:INT=1
ThresholdedRelu(X:T) -> Y:T | alpha:FLOAT=1.0
"""

_MICROSOFT = """
Attention(input:T weights:T bias:T? mask_index:M? past:T? attention_bias:T? past_sequence_length:M?) -> output:T present:T? |
  num_heads:INT! unidirectional:INT=0 qkv_hidden_sizes:INTS do_rotary:INT=0 rotary_embedding_dim:INT=0
  mask_filter_value:FLOAT=-10000.0 scale:FLOAT past_present_share_buffer:INT=0
AttnLSTM(X:T W:T R:T B:T? sequence_lens:T1? initial_h:T? initial_c:T? P:T? QW:T? MW:T? V:T? M:T? memory_seq_lens:T1? AW:T?) ->
  Y:T? Y_h:T? Y_c:T? | activation_alpha:FLOATS activation_beta:FLOATS activations:STRINGS clip:FLOAT direction:STRING='forward'
  hidden_size:INT input_forget:INT=0
BeamSearch(input_ids:F max_length:I min_length:I? num_beams:I num_return_sequences:I length_penalty:T? repetition_penalty:T?
  vocab_mask:M? prefix_vocab_mask:M? attention_mask:I? decoder_input_ids:I? logits_processor:I?) -> sequences:I
  sequences_scores:T? scores:T? | eos_token_id:INT! pad_token_id:INT! decoder_start_token_id:INT=-1 no_repeat_ngram_size:INT=0
  early_stopping:INT=0 model_type:INT=0 vocab_size:INT=-1 decoder:GRAPH! encoder:GRAPH init_decoder:GRAPH
BiasAdd(X:T bias:T skip:T) -> Y:T |
BiasGelu(A:T B:T) -> C:T |
BiasSoftmax(data:T bias:T) -> output:T | axis:INT=1 is_inner_broadcast:INT!
BiasSplitGelu(X:T bias:T) -> Y:T |
BifurcationDetector(src_tokens:T cur_tokens:T prev_suffix_match_idx:T pred_tokens:T?) -> tokens:T suffix_match_idx:T |
  max_ngram_size:INT=3 min_ngram_size:INT=1
BranchwiseRMSNorm(X:T scale:M?) -> Y:T | epsilon:FLOAT=1e-05 num_branches:INT=0
CDist(A:T B:T) -> C:T | metric:STRING='sqeuclidean'
CausalConvWithState(input:T weight:T bias:T? past_state:T?) -> output:T present_state:T | activation:STRING='none'
  channels_last:INT=0 dilation:INT=1 ndim:INT=1 state_window:INT=0
ConvTransposeWithDynamicPads(X:T W:T Pads:tensor(int64)? B:T?) -> Y:T | auto_pad:STRING='NOTSET' dilations:INTS group:INT=1
  kernel_shape:INTS output_padding:INTS strides:INTS
CropAndResize(X:T1 rois:T1 batch_indices:T2 crop_size:T2) -> Y:T1 | mode:STRING='bilinear' extrapolation_value:FLOAT=0.0
DecoderMaskedMultiHeadAttention(query:T key:T? value:T? mask_index:M? attention_bias:T? past_key:T? past_value:T?
  past_sequence_length:M? beam_width:M? cache_indirection:M? bias:T?) -> output:T present_key:T? present_value:T? qk:QK? |
  num_heads:INT! mask_filter_value:FLOAT=-10000.0 output_qk:INT=0 past_present_share_buffer:INT=0 scale:FLOAT
DecoderMaskedSelfAttention(input:T weights:T bias:T mask_index:M? past:T attention_bias:T? past_sequence_length:M beam_width:M?
  cache_indirection:M?) -> output:T present:T | num_heads:INT! do_rotary:INT=0 mask_filter_value:FLOAT=-10000.0
  past_present_share_buffer:INT=0 scale:FLOAT
DequantizeLinear(x:T1 x_scale:T2 x_zero_point:T1?) -> y:T2 | axis:INT=1
DynamicQuantizeLSTM(X:T W:T2 R:T2 B:T? sequence_lens:T1? initial_h:T? initial_c:T? P:T? W_scale:T W_zero_point:T2 R_scale:T
  R_zero_point:T2) -> Y:T? Y_h:T? Y_c:T? | activation_alpha:FLOATS activation_beta:FLOATS activations:STRINGS clip:FLOAT
  direction:STRING='forward' hidden_size:INT input_forget:INT=0
DynamicQuantizeMatMul(A:T1 B:T2 b_scale:T1 b_zero_point:T2? bias:T1?) -> Y:T1 |
DynamicTimeWarping(input:F) -> output:I |
EmbedLayerNormalization(input_ids:T1 segment_ids:T1? word_embedding:T position_embedding:T segment_embedding:T? gamma:T beta:T
  mask:T1? position_ids:T1?) -> output:T mask_index:T1? embedding_sum:T? | epsilon:FLOAT=1e-12 mask_index_type:INT=0
EngramGate(key:T query:T value:T key_norm_scale:T query_norm_scale:T conv_norm_scale:T?) -> output:T gated_value_normed:T? |
  epsilon:FLOAT=1e-05
ExpandDims(X:T axis:tensor(int32)) -> Y:T |
FastGelu(X:T bias:T?) -> Y:T |
FusedConv(X:T W:T B:T? Z:T?) -> Y:T | auto_pad:STRING='NOTSET' kernel_shape:INTS dilations:INTS strides:INTS pads:INTS group:INT=1
  activation:STRING activation_params:FLOATS
FusedGemm(A:T B:T C:T?) -> Y:T | transA:INT=0 transB:INT=0 alpha:FLOAT=1.0 beta:FLOAT=1.0 activation:STRING activation_alpha:FLOAT
  activation_beta:FLOAT activation_gamma:FLOAT
FusedMatMul(A:T B:T) -> Y:T | alpha:FLOAT=1.0 transA:INT=0 transB:INT=0 transBatchA:INT=0 transBatchB:INT=0
FusedMatMulActivation(A:T B:T) -> Y:T | alpha:FLOAT=1.0 transA:INT=0 transB:INT=0 transBatchA:INT=0 transBatchB:INT=0
  activation:STRING! activation_alpha:FLOAT activation_axis:INT activation_beta:FLOAT activation_gamma:FLOAT
GatedAdd(X:T Y:T gate:T) -> output:T |
GatedDeltaNet(query:T key:T? value:T? cu_seqlens:tensor(int32)? decay:TG? beta:TG? initial_state:tensor(float)? a_log:tensor(float)?
  dt_bias:tensor(float)? capture_count:tensor(int32)? state_update_active:tensor(int32)?) -> output:T final_state:tensor(float)?
  state_update:tensor(float)? | beta_activation:STRING='none' chunk_size:INT=64 gate_activation:STRING='none'
  gate_lower_bound:FLOAT=-5.0 qk_l2_norm:INT=0 scale:FLOAT=0.0 state_update_capacity:INT=0 update_rule:STRING='gated_delta'
GatedRMSNorm(X:T scale:T gate:T) -> Y:T | activation:STRING='silu' epsilon:FLOAT=1e-05
GatherBlockQuantized(data:T1 indices:Tind scales:T2 zero_points:T1?) -> output:T2 | gather_axis:INT=0 quantize_axis:INT=1
  block_size:INT=128 bits:INT=4
GatherND(data:T indices:Tind) -> output:T |
GatherPacked(data:tensor(uint8) indices:Tind) -> output:T2 | packed_type:INT! output_dtype:INT=16 K:INT!
Gelu(X:T) -> Y:T |
GreedySearch(input_ids:I max_length:I min_length:I? repetition_penalty:T? vocab_mask:I? prefix_vocab_mask:I? attention_mask:I?)
  -> sequences:I | eos_token_id:INT! pad_token_id:INT! decoder_start_token_id:INT=-1 no_repeat_ngram_size:INT=0 model_type:INT=0
  vocab_size:INT=-1 decoder:GRAPH! encoder:GRAPH init_decoder:GRAPH
GridSample(X:T1 Grid:T1) -> Y:T2 | align_corners:INT=0 mode:STRING='bilinear' padding_mode:STRING='zeros'
GroupQueryAttention(query:T key:T? value:T? past_key:T_CACHE? past_value:T_CACHE? seqlens_k:M total_sequence_length:M cos_cache:T?
  sin_cache:T? position_ids:tensor(int64)? attention_bias:T? head_sink:T? k_scale:T_KV_SCALE? v_scale:T_KV_SCALE? q_norm_weight:T?
  k_norm_weight:T?) -> output:T present_key:T_CACHE? present_value:T_CACHE? output_qk:T? | num_heads:INT! kv_num_heads:INT!
  scale:FLOAT softcap:FLOAT=0.0 local_window_size:INT=-1 do_rotary:INT=0 rotary_interleaved:INT=0 smooth_softmax:INT=-1
  qk_output:INT=0 k_quant_type:STRING='NONE' v_quant_type:STRING='NONE' kv_cache_bit_width:INT=0 causal:INT=1
  qk_norm_epsilon:FLOAT=1e-06 sliding_window_cache:INT=0
HyperConnectionPostMix(streams:T block_output:T post_mix:M stream_mix:M?) -> output:T | num_branches:INT=0
HyperConnectionPreMix(streams:T pre_mix:M) -> output:T | num_branches:INT=0 reduction_scale:FLOAT=1.0
Inverse(X:T) -> Y:T |
LinearAttention(query:T key:T value:T past_state:S? decay:T? beta:T?) -> output:T present_state:S | chunk_size:INT=64
  kv_num_heads:INT! q_num_heads:INT! scale:FLOAT=0.0 state_window:INT=0 update_rule:STRING='gated_delta'
LinearAttentionGate(a:T dt_bias:TF decay_scale:TF b:T?) -> decay:T beta:T? |
MRotaryEmbedding(input:T position_ids:M cos_cache:T sin_cache:T) -> output:T | mrope_section:INTS! num_heads:INT=0
  rotary_embedding_dim:INT=0 interleaved:INT=0 mrope_layout:INT=0 is_packed_batching:INT=0 scale:FLOAT=1.0
MatMulBlockQuantizedFp4Weight(A:T B:T1 weight_scale:T2 weight_scale_2:T3 input_scale:T3? bias:T?) -> Y:T | block_size:INT=16
MatMulBlockQuantizedFp8Weight(A:T B:T1 b_scale:T2 a_scale:T2? bias:T?) -> Y:T | block_size:INT=128
MatMulBnb4(A:T1 B:T2 absmax:T1) -> Y:T1 | K:INT! N:INT! block_size:INT! quant_type:INT! training_mode:INT=0 transB:INT=1
MatMulFpQ4(A:T1 B:T2 B_shape:T3) -> Y:T1 | blk_quant_type:INT=1
MatMulInteger16(A:T1 B:T2) -> Y:T3 |
MatMulIntegerToFloat(A:T1 B:T2 a_scale:T3 b_scale:T3 a_zero_point:T1? b_zero_point:T2? bias:T3?) -> Y:T3 |
MatMulNBitsMlp(A:T1 skip:T1? norm_scale:T1? gate_B:T2 gate_scales:T1 gate_bias:T1? up_B:T2 up_scales:T1 up_bias:T1?) -> Y:T1
  input_skip_bias_sum:T1? | K:INT! N:INT! accuracy_level:INT=0 activation:STRING! bits:INT=4 block_size:INT! epsilon:FLOAT=1e-05
MatMulNBitsQkv(A:T1 skip:T1? norm_scale:T1 q_B:T2 q_scales:T1 q_bias:T1? k_B:T2 k_scales:T1 k_bias:T1? v_B:T2 v_scales:T1
  v_bias:T1?) -> Q:T1 K:T1 V:T1 input_skip_bias_sum:T1? | K:INT! Nkv:INT! Nq:INT! accuracy_level:INT=0 bits:INT=4 block_size:INT!
  epsilon:FLOAT=1e-06
MatMulNBits(A:T1 B:T2 scales:T1 zero_points:T3? g_idx:T4? bias:T1?) -> Y:T1 | K:INT! N:INT! bits:INT=4 block_size:INT!
  accuracy_level:INT=0 weight_prepacked:INT=0
MaxpoolWithMask(X:T M:tensor(int32)) -> Y:T | auto_pad:STRING='NOTSET' kernel_shape:INTS pads:INTS storage_order:INT=0 strides:INTS
MoE(input:T router_probs:T fc1_experts_weights:T fc1_experts_bias:T? fc2_experts_weights:T fc2_experts_bias:T?
  fc3_experts_weights:T? fc3_experts_bias:T?) -> output:T | activation_alpha:FLOAT=1.0 activation_beta:FLOAT=0.0
  activation_type:STRING='relu' k:INT=1 normalize_routing_weights:INT=0 swiglu_fusion:INT=0 swiglu_limit:FLOAT
  use_sparse_mixer:INT=0
MoEGroupRouter(logits:T expert_bias:tensor(float) projection_weight:T?) -> router_probs:T? selection_scores:tensor(float)?
  router_weights:tensor(float)? | top_k:INT! n_group:INT=1 topk_group:INT=1 group_topk:INT=2 router_sentinel:FLOAT=-10000.0
MultiHeadAttention(query:T key:T? value:T? bias:T? key_padding_mask:M? attention_bias:T? past_key:T? past_value:T?
  past_sequence_length:M? cache_indirection:M?) -> output:T present_key:T? present_value:T? qk:QK? | num_heads:INT! scale:FLOAT
  mask_filter_value:FLOAT=-10000.0 unidirectional:INT=0
MurmurHash3(X:T1) -> Y:T2 | positive:INT=1 seed:INT=0
NGramHashMapping(input_ids:M multipliers:M vocab_sizes:M past_ids:M? head_offsets:M? eos_token_id:M? segment_ids:tensor(int32)?) ->
  hash_ids:M present_ids:M? | max_ngram_size:INT! n_head_per_ngram:INT! pad_id:INT! reset_on_eos:INT=0
NGramRepeatBlock(input_ids:Tid scores:T) -> scores_out:T | ngram_size:INT!
NhwcMaxPool(x:T) -> y:T | auto_pad:STRING='NOTSET' ceil_mode:INT=0 dilations:INTS kernel_shape:INTS! pads:INTS strides:INTS
Pad(data:T pads:tensor(int64) value:T?) -> output:T | mode:STRING='constant'
PagedAttention(query:T key:T? value:T? key_cache:T_CACHE value_cache:T_CACHE? cumulative_sequence_length:S past_seqlens:S
  block_table:S cos_cache:T? sin_cache:T? slot_mapping:S? head_sink:T? q_norm_weight:T? k_norm_weight:T? k_scale:T_KV_SCALE?
  v_scale:T_KV_SCALE? attention_metadata:S?) -> output:T key_cache_out:T_CACHE? value_cache_out:T_CACHE? | num_heads:INT!
  kv_num_heads:INT! scale:FLOAT softcap:FLOAT=0.0 local_window_size:INT=-1 is_causal:INT=1 do_rotary:INT=0 rotary_interleaved:INT=0
  rotary_offset:INT=0 qk_norm_epsilon:FLOAT=1e-06 v_head_size:INT=0 kv_cache_layout:STRING='SEPARATE' k_quant_type:STRING='NONE'
  v_quant_type:STRING='NONE' k_cache_dtype:STRING='' v_cache_dtype:STRING=''
QAttention(input:T1 weight:T2 bias:T3 input_scale:T3 weight_scale:T3 mask_index:T4? input_zero_point:T1? weight_zero_point:T2?
  past:T3?) -> output:T3 present:T3? | num_heads:INT! unidirectional:INT=0 do_rotary:INT=0 scale:FLOAT
  mask_filter_value:FLOAT=-10000.0 past_present_share_buffer:INT=0
QEmbedLayerNormalization(input_ids:T1 segment_ids:T1? word_embedding_quant:T2 position_embedding_quant:T2 segment_embedding:T2?
  gamma_quant:T2 beta_quant:T2 mask:T1? word_embedding_scale:T position_embedding_scale:T segment_embedding_scale:T? gamma_scale:T
  beta_scale:T word_embedding_zero_point:T2 position_embedding_zero_point:T2 segment_embedding_zero_point:T2? gamma_zero_point:T2
  beta_zero_point:T2) -> layernorm_out:T mask_index_out:T1 | epsilon:FLOAT=1e-12
QGemm(A:TA a_scale:T a_zero_point:TA B:TB b_scale:T b_zero_point:TB C:TC? y_scale:T? y_zero_point:TYZ?) -> Y:TY | transA:INT=0
  transB:INT=0 alpha:FLOAT=1.0
QLinearAdd(A:T A_scale:tensor(float) A_zero_point:T? B:T B_scale:tensor(float) B_zero_point:T? C_scale:tensor(float)
  C_zero_point:T?) -> C:T |
QLinearAveragePool(X:T x_scale:tensor(float) x_zero_point:T? y_scale:tensor(float) y_zero_point:T?) -> Y:T |
  auto_pad:STRING='NOTSET' kernel_shape:INTS! strides:INTS pads:INTS ceil_mode:INT=0 count_include_pad:INT=0 channels_last:INT=0
QLinearConcat(Y_scale:TF Y_zero_point:T8 inputs:TV+) -> Y:T8 | axis:INT!
QLinearConv(x:T1 x_scale:tensor(float) x_zero_point:T1 w:T2 w_scale:tensor(float) w_zero_point:T2 y_scale:tensor(float)
  y_zero_point:T3 B:T4?) -> y:T3 | auto_pad:STRING='NOTSET' channels_last:INT=0 dilations:INTS group:INT=1 kernel_shape:INTS
  pads:INTS strides:INTS
QLinearGlobalAveragePool(X:T x_scale:tensor(float) x_zero_point:T y_scale:tensor(float) y_zero_point:T) -> Y:T |
  channels_last:INT=0
QLinearLeakyRelu(X:T X_scale:tensor(float) X_zero_point:T? Y_scale:tensor(float) Y_zero_point:T?) -> Y:T | alpha:FLOAT=0.01
QLinearMul(A:T A_scale:tensor(float) A_zero_point:T? B:T B_scale:tensor(float) B_zero_point:T? C_scale:tensor(float)
  C_zero_point:T?) -> C:T |
QLinearSigmoid(X:T X_scale:tensor(float) X_zero_point:T? Y_scale:tensor(float) Y_zero_point:T?) -> Y:T |
QLinearSoftmax(X:T X_scale:tensor(float) x_zero_point:T? y_scale:tensor(float) y_zero_point:T) -> Y:T | axis:INT=-1 opset:INT!
QLinearWhere(condition:B X:T x_scale:TF x_zero_point:T Y:T y_scale:TF y_zero_point:T z_scale:TF z_zero_point:T) -> Z:T |
QMoE(input:T router_probs:T fc1_experts_weights:T1 fc1_scales:T2? fc1_experts_bias:T? fc2_experts_weights:T1 fc2_scales:T2?
  fc2_experts_bias:T? fc3_experts_weights:T1? fc3_scales:T2? fc3_experts_bias:T? fc1_zero_points:T1? fc2_zero_points:T1?
  fc3_zero_points:T1? router_weights:T? fc1_global_scale:T4? fc2_global_scale:T4? fc1_act_scale:T4? fc2_act_scale:T4?
  fc1_act_block_scale:T2? fc2_act_block_scale:T2?) -> output:T | accuracy_level:INT=0 activation_alpha:FLOAT=1.0
  activation_beta:FLOAT=0.0 activation_type:STRING='relu' block_size:INT expert_weight_bits:INT=4 fc1_expert_weight_bits:INT
  fc2_expert_weight_bits:INT fc3_expert_weight_bits:INT k:INT=1 normalize_routing_weights:INT=0 quant_type:STRING='int'
  swiglu_fusion:INT=0 swiglu_limit:FLOAT use_sparse_mixer:INT=0 weights_prepacked:INT=-1
QuantizeLinear(x:T1 y_scale:T1 y_zero_point:T2?) -> y:T2 | axis:INT=1
QuickGelu(X:T) -> Y:T | alpha:FLOAT=1.702
Range(start:T limit:T delta:T?) -> Y:T |
RotaryEmbedding(input:T position_ids:M cos_cache:T sin_cache:T) -> output:T | scale:FLOAT=1.0 interleaved:INT=0
  rotary_embedding_dim:INT=0 num_heads:INT=0 is_packed_batching:INT=0
SampleOp(X:T) -> Y:T |
Sampling(input_ids:I max_length:I min_length:I? repetition_penalty:T? vocab_mask:I? prefix_vocab_mask:I? attention_mask:I?
  presence_mask:I? seed:I?) -> sequences:I filtered_logits:T? | eos_token_id:INT! pad_token_id:INT! decoder_start_token_id:INT=-1
  no_repeat_ngram_size:INT=0 model_type:INT=0 vocab_size:INT=-1 temperature:FLOAT=1.0 top_p:FLOAT=0.0 filter_value:FLOAT=-1e20
  min_tokens_to_keep:INT=0 presence_penalty:FLOAT=0.0 custom:INT=0 decoder:GRAPH! encoder:GRAPH init_decoder:GRAPH
ScaledSiLU(X:T scale:M?) -> Y:T | alpha:FLOAT=1.0
SkipLayerNormalization(input:T skip:T gamma:T beta:T? bias:T?) -> output:T mean:U? inv_std_var:U? input_skip_bias_sum:T? |
  epsilon:FLOAT=1e-12
SkipSimplifiedLayerNormalization(input:T skip:T gamma:T bias:T?) -> output:T mean:U? inv_std_var:U? input_skip_bias_sum:T? |
  epsilon:FLOAT=1e-12
SparseAttention(query:T key:T? value:T? past_key:T past_value:T block_row_indices:M block_col_indices:M total_sequence_length:M
  key_total_sequence_lengths:M cos_cache:T? sin_cache:T?) -> output:T present_key:T present_value:T | num_heads:INT!
  kv_num_heads:INT! sparse_block_size:INT! scale:FLOAT do_rotary:INT=0 rotary_interleaved:INT=0
SparseToDenseMatMul(A:T B:T1) -> Y:T1 | alpha:FLOAT=1.0 transA:INT=0 transB:INT=0
Tokenizer(X:tensor(string)) -> Y:tensor(string) | mark:INT! mincharnum:INT! pad_value:STRING! separators:STRINGS tokenexp:STRING
TransposeMatMul(A:T B:T) -> Y:T | alpha:FLOAT=1.0 transA:INT=0 transB:INT=0
Trilu(X:T k:tensor(int64)?) -> Y:T | upper:INT=1
UnfoldTensor(input:T) -> output:T | dim:INT=-1 size:INT! step:INT=1
Unique(x:T) -> y:T idx:tensor(int64) counts:tensor(int64) |
VarlenCausalConvWithState(input:T weight:T cumulative_sequence_length:tensor(int32) bias:T? initial_state:T
  capture_count:tensor(int32)? kernel_delta:T? previous_mask:T?) -> output:T final_state:T state_update:T? |
  activation:STRING='none' delta_offset:INT=0 dilation:INT=1 group_size:INT=1 state_update_capacity:INT=0
VarlenNGramHashMapping(input_ids:M multipliers:M vocab_sizes:M cumulative_sequence_length:tensor(int32) past_ids:M? head_offsets:M?
  eos_token_id:M? segment_ids:tensor(int32)? past_segment_ids:tensor(int32)? capture_count:tensor(int32)?) -> hash_ids:M
  present_ids:M? present_segment_ids:tensor(int32)? state_update:M? | max_ngram_size:INT! n_head_per_ngram:INT! pad_id:INT!
  reset_on_eos:INT=0 state_update_capacity:INT=0
WhisperBeamSearch(input_ids:F max_length:I min_length:I? num_beams:I num_return_sequences:I length_penalty:T? repetition_penalty:T?
  vocab_mask:M? prefix_vocab_mask:M? attention_mask:I? decoder_input_ids:I? logits_processor:I? cross_qk_layer_head:I?
  extra_decoding_ids:I? temperature:T?) -> sequences:I sequences_scores:T? scores:T? cross_qk:V? non_speech_probs:T? |
  eos_token_id:INT! pad_token_id:INT! decoder_start_token_id:INT=-1 no_repeat_ngram_size:INT=0 early_stopping:INT=0 model_type:INT=2
  vocab_size:INT=-1 decoder_output_cross_qk:INT=0 translate_token_id:INT transcribe_token_id:INT start_of_lm_token_id:INT
  no_speech_token_id:INT=-1 no_timestamps_token_id:INT beginning_timestamp_token_id:INT decoder:GRAPH! encoder:GRAPH
  init_decoder:GRAPH
WordConvEmbedding(Sequence:T W:T1 B:T1 C:T1) -> Y:T1 | char_embedding_size:INT conv_window_size:INT embedding_size:INT
"""

_OPTIONS = {"?": ParameterOption.OPTIONAL, "*": ParameterOption.VARIADIC, "+": ParameterOption.VARIADIC}


def _parameters(text: str) -> tuple[ParameterSchema, ...]:
    found = []
    for word in text.split():
        name, _, type = word.partition(":")
        option = _OPTIONS.get(word[-1], ParameterOption.SINGLE)
        found.append(ParameterSchema(name, type.rstrip("?*+"), option, word[-1] != "+"))
    return tuple(found)


def _attributes(text: str) -> dict[str, AttributeSchema]:
    found = {}
    for word in text.split():
        name, _, rest = word.partition(":")
        kind, _, default = rest.partition("=")
        value: object = ast.literal_eval(default) if default else None
        found[name] = AttributeSchema(name, AttributeKind[kind.rstrip("!")], kind.endswith("!"), value)
    return found


def _limits(formals: tuple[ParameterSchema, ...]) -> tuple[int, int]:
    needed = [index + 1 for index, formal in enumerate(formals) if formal.option is not ParameterOption.OPTIONAL]
    is_variadic = bool(formals) and formals[-1].option is ParameterOption.VARIADIC
    return max(needed, default=0), _UNBOUNDED if is_variadic else len(formals)


def _schema(domain: str, line: str) -> OpSchema:
    name, _, rest = line.partition("(")
    inputs_text, _, rest = rest.partition(") -> ")
    outputs_text, _, attributes_text = rest.partition("|")
    inputs, outputs = _parameters(inputs_text), _parameters(outputs_text)
    variables = {formal.type for formal in inputs + outputs if "(" not in formal.type}
    constraints = {variable: TypeConstraint(variable, frozenset()) for variable in variables}
    attributes = _attributes(attributes_text)
    return OpSchema(domain, name, 1, inputs, outputs, attributes, constraints, *_limits(inputs), *_limits(outputs), is_open=True)


def _table(domain: str, text: str) -> dict[tuple[str, str], OpSchema]:
    lines = text.strip().replace("\n  ", " ").splitlines()
    return {(domain, line.partition("(")[0]): _schema(domain, line) for line in lines}


CONTRIB_SCHEMAS: dict[tuple[str, str], OpSchema] = {
    **_table("", _AI_ONNX),
    **_table("com.microsoft", _MICROSOFT),
    **_table(DOMAIN, SIGNATURES),
}
"""(domain, operator) -> schema. Type constraints list no types: which of them a kernel takes is the provider's to say."""

OLDER_SCHEMAS: dict[tuple[str, str], OpSchema] = _table("", _AI_ONNX_BEFORE_THE_STANDARD)
"""The same for operators that ONNX Runtime has in operator sets of ai.onnx that are older than the standard's."""
