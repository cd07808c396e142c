// Access to the embedded rule data.
