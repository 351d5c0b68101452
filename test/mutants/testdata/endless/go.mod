module example.com/endless

go 1.26
