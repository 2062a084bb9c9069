// swift-tools-version:5.9

import PackageDescription

let package = Package(
    name: "Turnlog",
    products: [.library(name: "Turnlog", targets: ["Turnlog"])],
    targets: [.target(name: "Turnlog")]
)
