"""What an attachment costs in memory: packs added, originals kept, put away or given up."""
