// swift-tools-version: 6.1
import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

/// A Swift target of the house: every one is built with the same settings and names all that it imports.
func target(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

let package = Package(
  name: "sallyport",
  platforms: [.macOS(.v14), .iOS(.v15)],
  products: [
    .library(name: "AppAttest", targets: ["AppAttest"]),
    .library(name: "ByteCoding", targets: ["ByteCoding"]),
    .library(name: "CBOR", targets: ["CBOR"]),
    .library(name: "Cryptography", targets: ["Cryptography"]),
  ],
  dependencies: [],
  targets: [
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CLibCBOR", pkgConfig: "libcbor", providers: [.apt(["libcbor-dev"])]),

    target("ByteCoding"),
    target("CBOR", ["CLibCBOR"]),
    target("Cryptography", ["ByteCoding", "COpenSSL"]),
    target("AppAttest", ["ByteCoding", "CBOR", "Cryptography"]),
    target("AttestGate", ["AppAttest", "ByteCoding", "Cryptography"]),
    target("Transport"),
    target("TransportEngine", ["Transport", "ByteCoding", "COpenSSL"]),
    tests("ByteCodingTests", ["ByteCoding"]),
    tests("CBORTests", ["CBOR", "ByteCoding"]),
    tests("CryptographyTests", ["Cryptography", "ByteCoding"]),
    tests("AppAttestTests", ["AppAttest", "ByteCoding", "CBOR", "Cryptography"]),
  ]
)
