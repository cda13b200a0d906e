"""What is compared: losses as plain differentiable functions, which know no mode and no tile."""
