"""Unit tests of gold views: case files, run through refreshes over real Delta tables."""
