"""From settings to a prepared job: pictures, network, loss mode, schedule and memory."""
