frt 1
impl fp8_static for decoder_ffn.mlp version 1 {
pack gate_up=quantize(cat(w_gate.T,w_up.T),fp8_e4m3,per tensor)
scale in_s=static(x)
# what the kernel does
numerics{acc f32,store g bf16,out bf16}
rung hub "flashrt/ffn" version 1 { envelope { 512<=D<=16384, D%16==0 }
call match activation { gelu => bf16_fp8_geglu_mlp_bf16, silu => bf16_fp8_swiglu_mlp_bf16 } (bf16(x_after_norm), gate_up, down, in_s) }
band M in 1 ..= 8 { rung torch { lower matmul to scaled_mm } } otherwise host
band M in 9 .. { rung emulate }
}
scheme s { at ffn version 1 {x:amax per tensor,y:none} use fp8_static at linear_proj keep "no" otherwise keep "no" }
