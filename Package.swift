// swift-tools-version: 6.2
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

func executable(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

/// What several test targets share; it stands among them.
func support(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, path: "Tests/\(name)", swiftSettings: settings)
}

/// A program that tests or measurements run; it stands among them.
func program(_ name: String, in folder: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: dependencies, path: "Tests/\(folder)", swiftSettings: settings)
}

/// The gate builds and is tested without the MFA backend, its server framework and NIO when this is set.
let gateOnly = Context.environment["SALLYPORT_GATE_ONLY"] == "1"

/// The fuzz targets and what they fuzz, and nothing else: see scripts/fuzz, which builds with flags of its own.
let fuzzing = Context.environment["SALLYPORT_FUZZING"] == "1"

let package = Package(
  name: "sallyport",
  platforms: [.macOS(.v14), .iOS(.v16)],
  // `AttestClient`, `ByteCoding` and `MFAWire` are for Apple's platforms, too; the others need OpenSSL and Linux.
  products: [
    .library(name: "AppAttest", targets: ["AppAttest"]),
    .library(name: "ByteCoding", targets: ["ByteCoding"]),
    .library(name: "CBOR", targets: ["CBOR"]),
    .library(name: "Cryptography", targets: ["Cryptography"]),
    .library(name: "AttestClient", targets: ["AttestClient"]),
    .library(name: "SimulatedDevice", targets: ["SimulatedDevice"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
  ],
  targets: [
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    .systemLibrary(name: "CLibCBOR", pkgConfig: "libcbor", providers: [.apt(["libcbor-dev"])]),

    target("ByteCoding"),
    target("CBOR", ["CLibCBOR"]),
    target("Cryptography", ["ByteCoding", "COpenSSL", "Locking"]),
    target("AppAttest", ["ByteCoding", "CBOR", "Cryptography"]),
    target("Locking"),
    target("AttestGate", ["AppAttest", "ByteCoding", "Cryptography", "Locking"]),
    target("Transport"),
    .target(name: "CRecordBuffers", dependencies: ["COpenSSL"]),
    target("TransportEngine", ["Transport", "ByteCoding", "COpenSSL", "CLinux", "CRecordBuffers", "Locking"]),
    target(
      "GateService",
      [
        "AttestGate", "AppAttest", "ByteCoding", "Cryptography", "JSONLog", "Locking", "Prometheus", "Transport",
        .product(name: "Logging", package: "swift-log"),
      ]),
    target("Prometheus", ["Locking"]),
    target("JSONLog", ["ByteCoding", "Locking", .product(name: "Logging", package: "swift-log")]),
    target(
      "SQLiteStore",
      [
        "AttestGate", "AppAttest", "ByteCoding", "Cryptography", "Locking", "ProcessSignals",
        .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    target("PostgresStore", ["AttestGate", "AppAttest", "ByteCoding", "CPostgres", "Cryptography", "Locking"]),
    target("KeyTransfer", ["AppAttest", "AttestGate", "ByteCoding", "Cryptography"]),
    target("YAMLSource", [.product(name: "Yams", package: "Yams")]),
    target("Settings", ["ByteCoding", "YAMLSource"]),
    target("Preflight", ["AttestGate", "ByteCoding", "Cryptography", "Settings", "Transport", "TransportEngine"]),
    target("ClientAuthority", ["ByteCoding", "Cryptography"]),
    target("Systemd"),
    .target(name: "CSignals"),
    .target(name: "CEarlySignals"),
    target("ProcessSignals", ["CSignals", "Locking"]),
    .target(name: "CSuccessor"),
    target("Succession", ["CSuccessor", "Locking"]),
    target("AttestClient", ["ByteCoding", .target(name: "Cryptography", condition: .when(platforms: [.linux]))]),
    target("SimulatedDevice", ["AttestClient", "ByteCoding", "CBOR", "Cryptography", "Locking"]),
    executable(
      "sallyport",
      [
        "AppAttest", "AttestGate", "ByteCoding", "CEarlySignals", "ClientAuthority", "Cryptography", "GateService",
        "JSONLog", "KeyTransfer", "Locking", "PostgresStore", "Preflight", "ProcessSignals", "Prometheus",
        "SQLiteStore", "Settings", "SimulatedDevice", "Succession", "Systemd", "Transport", "TransportEngine",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    executable("attest", ["AttestTool", "ProcessSignals", "TransportEngine"]),
    target(
      "AttestTool",
      [
        "AttestClient", "ByteCoding", "Cryptography", "Locking", "ProcessSignals", "SimulatedDevice", "Transport",
        "TransportEngine", .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    support("TestSupport", ["Locking"]),
    support(
      "GateFixtures",
      ["AppAttest", "AttestGate", "ByteCoding", "Cryptography", "Locking", "SimulatedDevice", "SQLiteStore"]),
    support(
      "GateProcesses", ["ByteCoding", "Cryptography", "SimulatedDevice", "TestSupport", "Transport", "TransportEngine"]),
    support("PostgresServers", ["Locking", "TestSupport"]),
    support("GuideShim", ["AttestClient", "Cryptography", "Locking", "SimulatedDevice"]),
    program("guide-client", in: "GuideClient", ["GuideShim", "SimulatedDevice"]),
    program(
      "gate-bench", in: "GateBenchmark",
      [
        "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "GateFixtures", "GateService", "JSONLog", "Locking",
        "PostgresStore", "SQLiteStore", "SimulatedDevice",
        "Transport", .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
      ]),
    support("StoreConformance", ["AppAttest", "AttestGate", "ByteCoding", "Cryptography"]),

    tests("AppAttestMintedTests", ["AppAttest", "ByteCoding", "CBOR", "Cryptography", "SimulatedDevice"]),
    tests("AppAttestTests", ["AppAttest", "ByteCoding", "CBOR", "Cryptography", "SimulatedDevice", "TestSupport"]),
    tests(
      "AttestClientTests",
      [
        "AttestClient", "ByteCoding", "Cryptography", "Locking", "SimulatedDevice", "TestSupport", "Transport",
        "TransportEngine",
      ]),
    tests(
      "AttestGateTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "CBOR", "Cryptography", "GateFixtures", "Locking", "SimulatedDevice",
        "SQLiteStore", "StoreConformance",
      ]),
    tests(
      "AttestToolTests",
      [
        "AttestTool", "AttestClient", "ByteCoding", "Cryptography", "SimulatedDevice", "Transport", "TransportEngine",
        "attest", "sallyport", "Locking", "TestSupport",
      ]),
    tests("ByteCodingTests", ["ByteCoding"]),
    tests(
      "ClusterTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "GateProcesses", "Locking", "PostgresServers",
        "PostgresStore", "SQLiteStore", "SimulatedDevice", "StoreConformance", "TestSupport", "Transport",
        "TransportEngine", "attest", "sallyport",
      ]),
    tests("CBORTests", ["CBOR", "ByteCoding"]),
    tests("ConformanceTests", ["GateProcesses", "SimulatedDevice", "TestSupport", "sallyport"]),
    tests("CertificateIssuingTests", ["ByteCoding", "Cryptography", "TestSupport"]),
    tests("CryptographyTests", ["Cryptography", "ByteCoding"]),
    tests(
      "EndToEndTests",
      [
        "AttestGate", "ByteCoding", "Cryptography", "Locking", "SimulatedDevice", "TestSupport", "Transport",
        "TransportEngine", "attest", "sallyport", .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    tests(
      "GateServiceTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "GateFixtures", "GateService", "JSONLog", "Locking",
        "Prometheus", "SimulatedDevice", "SQLiteStore", "Transport", .product(name: "Logging", package: "swift-log"),
      ]),
    tests(
      "GuideTests",
      [
        "GateProcesses", "SimulatedDevice", "TestSupport", "Transport", "TransportEngine", "guide-client", "attest",
        "sallyport",
      ]),
    tests(
      "OperatorTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "GateProcesses", "GateService", "KeyTransfer",
        "Locking",
        "PostgresServers", "SQLiteStore", "SimulatedDevice", "TestSupport", "Transport", "TransportEngine", "attest",
        "sallyport", .product(name: "Logging", package: "swift-log"),
      ]),
    tests("JSONLogTests", ["JSONLog", "ByteCoding", .product(name: "Logging", package: "swift-log")]),
    tests(
      "LoadTests",
      [
        "ByteCoding", "Cryptography", "GateProcesses", "Locking", "PostgresServers", "SimulatedDevice", "TestSupport",
        "Transport", "TransportEngine", "attest", "sallyport",
      ]),
    tests(
      "SQLiteStoreTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "GateFixtures", "SQLiteStore", "StoreConformance",
        .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    tests(
      "PostgresStoreTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "PostgresServers", "PostgresStore", "SimulatedDevice",
        "StoreConformance", "TestSupport",
      ]),
    tests(
      "StoreCommandTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "PostgresServers", "PostgresStore", "SQLiteStore", "SimulatedDevice",
        "StoreConformance", "TestSupport", "sallyport", .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    tests("LockingTests", ["Locking"]),
    tests("PrometheusTests", ["Prometheus"]),
    tests(
      "PreflightTests",
      [
        "AttestGate", "ByteCoding", "Cryptography", "Preflight", "SQLiteStore", "Settings", "SimulatedDevice",
        "TestSupport", "Transport", "TransportEngine",
      ]),
    tests("ClientAuthorityTests", ["ByteCoding", "ClientAuthority", "Cryptography", "TestSupport"]),
    tests(
      "SeeingTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "GateProcesses", "GateService", "SimulatedDevice", "TestSupport",
        "Transport", "TransportEngine", "attest", "sallyport",
      ]),
    tests("ShippingTests", ["sallyport", "attest", "TestSupport"]),
    tests("SystemdTests", ["Systemd"]),
    tests("ProcessSignalsTests", ["ProcessSignals", "Locking", "TestSupport"]),
    tests("SuccessionTests", ["Succession", "Systemd", "TestSupport"]),
    tests("CheckCommandTests", ["sallyport", "ByteCoding", "SimulatedDevice", "TestSupport"]),
    tests("SettingsTests", ["ByteCoding", "Settings", "TestSupport"]),
    tests(
      "SimulatedDeviceTests", ["AppAttest", "AttestClient", "ByteCoding", "Cryptography", "SimulatedDevice", "Locking"]),
    tests(
      "TransportEngineTests",
      [
        "TransportEngine", "Transport", "ByteCoding", "COpenSSL", "ClientAuthority", "Cryptography", "Locking",
        "SimulatedDevice", "TestSupport",
      ]),
    tests(
      "VerifyCommandTests", ["sallyport", "AppAttest", "ByteCoding", "Cryptography", "SimulatedDevice", "TestSupport"]),
  ]
)

let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let cryptoExtras = Target.Dependency.product(name: "CryptoExtras", package: "swift-crypto")
let jwtKit = Target.Dependency.product(name: "JWTKit", package: "jwt-kit")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let unixSignals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")
let httpClient = Target.Dependency.product(name: "AsyncHTTPClient", package: "async-http-client")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore = Target.Dependency.product(name: "HummingbirdCore", package: "hummingbird")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let nio = ["NIOCore", "NIOPosix", "NIOHTTP1", "NIOWebSocket"].map {
  Target.Dependency.product(name: $0, package: "swift-nio")
}
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")

if !gateOnly && !fuzzing {
  // What a client of the backend reads and writes; it needs nothing but the standard library.
  package.products.append(.library(name: "MFAWire", targets: ["MFAWire"]))
  package.dependencies += [
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
  ]
  package.targets += [
    target("MFAWire"),
    target("MFADomain", ["ByteCoding", "CBOR", "Locking", crypto, cryptoExtras]),
    target("MFAStore", ["MFADomain", "ByteCoding", "CPostgres", "Locking", grdb]),
    target("MFATokens", ["MFADomain", "ByteCoding", "Locking", crypto, jwtKit, httpClient] + nio + [nioSSL, logging]),
    target(
      "MFADelivery", ["MFADomain", "ByteCoding", "Locking", httpClient, lifecycle, logging, metrics] + nio + [nioSSL]),
    target(
      "MFAService",
      [
        "MFADomain", "MFATokens", "MFAWire", "ByteCoding", "Locking", hummingbird, hummingbirdCore, lifecycle, logging,
        metrics,
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
        .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
      ] + nio),
    target("MFASettings", ["ByteCoding", "MFADomain", "YAMLSource"]),
    target("MFAMetrics", ["Locking", "Prometheus", metrics]),
    executable(
      "mfa-backend",
      [
        "MFADomain", "MFAStore", "MFATokens", "MFADelivery", "MFAService", "MFASettings", "MFAMetrics", "JSONLog",
        "ByteCoding", "CEarlySignals", "ProcessSignals", lifecycle, unixSignals, logging, metrics,
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    support(
      "MFAFixtures",
      [
        "MFADomain", "MFAStore", "MFATokens", "MFAService", "MFAWire", "ByteCoding", "CBOR", "Locking", "TestSupport",
        crypto, cryptoExtras, jwtKit, httpClient, logging,
      ] + nio),
    program(
      "mfa-bench", in: "MFABenchmark",
      [
        "ByteCoding", "TestSupport", crypto, httpClient,
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ] + nio),
    tests("MFASettingsTests", ["MFASettings"]),
    tests("MFADomainTests", ["MFADomain", "MFAFixtures", "MFAStore", "ByteCoding", "CBOR", crypto]),
    tests(
      "MFAServiceTests",
      [
        "MFADomain", "MFAFixtures", "MFAService", "MFAStore", "MFATokens", "MFAWire", "ByteCoding", "Locking",
        "PostgresServers", "TestSupport", crypto, logging, grdb,
      ] + nio),
    tests(
      "MFAEndToEndTests",
      [
        "ByteCoding", "GateProcesses", "MFADomain", "MFAFixtures", "MFAStore", "PostgresServers", "SimulatedDevice",
        "TestSupport", crypto,
        "attest", "mfa-backend", "sallyport",
      ]),
    tests(
      "MFADeliveryTests",
      [
        "MFADelivery", "MFADomain", "MFAFixtures", "ByteCoding", "Locking", "TestSupport", hummingbird, lifecycle,
        logging,
      ]),
  ]
}

// For work on the backend alone: the gate's tests take minutes to build.
if Context.environment["SALLYPORT_MFA_ONLY"] == "1" {
  package.targets.removeAll { $0.type == .test && !$0.name.hasPrefix("MFA") }
}

// What CI builds under a sanitizer, `scripts/test --sanitize core`: the tests of what threads share, and what they need.
if Context.environment["SALLYPORT_CORE_ONLY"] == "1" {
  var needed: Set = [
    "AttestGateTests", "GateServiceTests", "JSONLogTests", "LockingTests", "PrometheusTests", "SQLiteStoreTests",
    "TransportEngineTests",
  ]
  var open = needed
  while let name = open.popFirst() {
    for dependency in package.targets.first(where: { $0.name == name })?.dependencies ?? [] {
      guard case .byNameItem(let next, _) = dependency, needed.insert(next).inserted else { continue }
      open.insert(next)
    }
  }
  package.products = []
  package.targets.removeAll { !needed.contains($0.name) }
}

if fuzzing {
  package.products = [.library(name: "Fuzzing", type: .static, targets: ["Fuzzing"])]
  package.targets.removeAll { $0.type == .test }
  package.targets.append(
    support(
      "Fuzzing",
      [
        "AppAttest", "AttestGate", "ByteCoding", "CBOR", "COpenSSL", "Cryptography", "GateService", "Settings",
        "SimulatedDevice", "Transport", "TransportEngine",
      ]))
}
