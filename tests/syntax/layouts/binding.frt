frt 1
binding b { """Doc.""" host transformers ">=5"   class (A,B)
dims {D=config.d,F=config.f}  dims {
D = config.d }
each i in 0 .. L where config.kinds[ i ]=="full" { seat ffn:decoder_ffn . mlp version 1 at model.layers.{i}.mlp when not config.off {
variant activation = match config.hidden_act { "silu" => silu, # what Llama says
"gelu_pytorch_tanh" => gelu, else => refuse }
slot w_gate=gate_proj.weight:out_in # stored as nn.Linear does
slot b = zeros
slot w_norm = chunks ( dense.weight , scale , shift )

point act = input of down_proj
point x_after_norm = arg x of mlp


boundary at model.layers.{i} {x=input of post_attention_layernorm,y=output,slot w_norm=post_attention_layernorm.weight}
boundary none "why"
expect bias none of (gate_proj,up_proj) }
chain norm . y->qkv . x wire fp8_e4m3 require(same_storage,exclusive_consumer)
}
pipeline p version 2 { stage decode at model.layers { window noise="initial" } # the loop
loop denoise steps=config.steps
cadence tick runs(decode)
coverage complete_hot_path { hot_path (observation_inputs, vision_encoder, vision_merge, deepstack_features, multimodal_backbone, action_readout,)
segment action_readout:control in decode { seam "its end" } } } }
