"""The write side, one verb a module: define, crawl, assess, build, suppress, audit, release."""
