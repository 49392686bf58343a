frt 1

binding example {
  host transformers ">=5.0,<6" class LlamaForCausalLM
  dims { D = config.hidden_size, L = config.num_hidden_layers }
  HERE
}
