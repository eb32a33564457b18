"""What tests share: commands run in process, real servers and browsers, text whose translation is known."""
