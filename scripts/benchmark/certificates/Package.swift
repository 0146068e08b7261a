// swift-tools-version: 6.0
import PackageDescription

let package = Package(
  name: "certificates",
  platforms: [.macOS(.v14)],
  dependencies: [.package(url: "https://github.com/apple/swift-certificates", from: "1.21.1")],
  targets: [
    .executableTarget(
      name: "certificates", dependencies: [.product(name: "X509", package: "swift-certificates")])
  ])
