"""Commands that check and prove single APIs."""
