// swift-tools-version: 6.2
import PackageDescription

/// Continuous integration sets this: a warning then fails the build. Not for users, whose compiler may be newer and
/// warn of more.
let isStrict = Context.environment["SALLYPORT_STRICT"] == "1"

/// `scripts/fuzz` sets this. It builds no tests, and only the project's own code is instrumented: instrumented code of
/// other packages takes longer to build and leads libFuzzer to places that are not tested.
let fuzzing = Context.environment["SALLYPORT_FUZZING"] == "1"

let settings: [SwiftSetting] =
  [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
  ] + (isStrict ? [.treatAllWarnings(as: .error)] : [])
  + (fuzzing ? [.unsafeFlags(["-sanitize=fuzzer,address"])] : [])

/// The rooms of the house. Each target has its folder in one of them, below `Sources` or `Tests`. `RoomTests` knows
/// from which other rooms a room may import.
enum Room: String {
  /// For everyone: bytes, cryptography, logs, metrics, signals, borders to C.
  case common = "Common"
  /// Pure verification of devices: no clock, no input or output, nothing asynchronous.
  case attestation = "Attestation"
  /// The gate, from policy to socket.
  case gate = "Gate"
  /// What an app embeds, and a device without a phone.
  case device = "Device"
  /// The service behind the gate.
  case mfa = "MFA"
  /// One-time codes on the user's own machine, apart from the app that they protect.
  case authenticator = "Authenticator"
  /// Tokens of identity providers, and the HTTP that an app needs for them and for the gate.
  case signIn = "SignIn"

  func source(_ folder: String) -> String { "Sources/\(rawValue)/\(folder)" }
  func test(_ folder: String) -> String { "Tests/\(rawValue)/\(folder)" }
}

/// A Swift target: it names all that it imports.
func target(_ room: Room, _ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(
    name: name, dependencies: dependencies, path: room.source(name),
    swiftSettings: settings
      + (ofAdmission.contains(name) ? [.enableUpcomingFeature("NonisolatedNonsendingByDefault")] : []))
}

/// The targets through which each admission passes. Their asynchronous functions go on where their caller runs, which is
/// an event loop: otherwise each call would ask Swift's runtime to which executor it belongs, some thirty times in all.
let ofAdmission: Set<String> = [
  "Transport", "TransportEngine", "AttestGate", "GateService", "SQLiteStore", "PostgresStore",
]

func executable(_ room: Room, _ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: dependencies, path: room.source(name), swiftSettings: settings)
}

/// A target of C sources.
func cTarget(
  _ room: Room, _ name: String, _ dependencies: [Target.Dependency] = [], settings: [CSetting] = []
) -> Target {
  .target(name: name, dependencies: dependencies, path: room.source(name), cSettings: settings)
}

/// A C library of the system; `package` is the Debian package that has its headers.
func library(_ name: String, pkgConfig: String? = nil, package: String? = nil) -> Target {
  .systemLibrary(
    name: name, path: Room.common.source(name), pkgConfig: pkgConfig, providers: package.map { [.apt([$0])] })
}

/// What continuous integration tests is optimized; the tests themselves are not, which halves the time to compile them.
let testSettings = settings + (isStrict ? [.unsafeFlags(["-Onone"])] : [])

func tests(_ room: Room, _ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies, path: room.test(name), swiftSettings: testSettings)
}

/// What several test targets share; it stands among them.
func support(_ room: Room, _ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, path: room.test(name), swiftSettings: settings)
}

/// A program that tests or measurements run; it stands among them.
func program(_ room: Room, _ name: String, in folder: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: dependencies, path: room.test(folder), swiftSettings: settings)
}

// Environment variables, not package traits, leave parts out: a trait can drop a dependency of a target, and cannot
// drop the target itself, so that every file of the backend and of its tests would need an `#if`.

/// Whether to leave out the MFA backend, its server framework and NIO.
let gateOnly = Context.environment["SALLYPORT_GATE_ONLY"] == "1"

/// The commit for `--version`, with `+` if files differ from it. The scripts that build for other machines set it.
/// `Context.gitInformation` would be wrong: the package manager keeps the result of this manifest until the manifest or
/// the environment changes, which a new commit does not do.
let commit = (Context.environment["SALLYPORT_COMMIT"] ?? "").filter { $0.isLetter || $0.isNumber || $0 == "+" }

let package = Package(
  name: "sallyport",
  platforms: [.macOS(.v14), .iOS(.v16)],
  // `AttestClient`, `ByteCoding`, `GateWire`, `HTTPExchange`, `URLSessionExchange`, `MFAClient`, `MFAViewModels`,
  // `MFAWire` and `OIDCClient` are for Apple's platforms, too; the others need OpenSSL and Linux.
  products: [
    .library(name: "AndroidKeyAttestation", targets: ["AndroidKeyAttestation"]),
    .library(name: "AppAttest", targets: ["AppAttest"]),
    .library(name: "ByteCoding", targets: ["ByteCoding"]),
    .library(name: "CBOR", targets: ["CBOR"]),
    .library(name: "Cryptography", targets: ["Cryptography"]),
    .library(name: "Explanations", targets: ["Explanations"]),
    .library(name: "GateWire", targets: ["GateWire"]),
    .library(name: "HTTPExchange", targets: ["HTTPExchange"]),
    .library(name: "URLSessionExchange", targets: ["URLSessionExchange"]),
    .library(name: "AttestClient", targets: ["AttestClient"]),
    .library(name: "MFAWire", targets: ["MFAWire"]),
    .library(name: "MFAClient", targets: ["MFAClient"]),
    .library(name: "MFAViewModels", targets: ["MFAViewModels"]),
    .library(name: "SimulatedDevice", targets: ["SimulatedDevice"]),
    .library(name: "SimulatedPhone", targets: ["SimulatedPhone"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
  ],
  targets: [
    library("COpenSSL", pkgConfig: "openssl", package: "libssl-dev"),
    library("CLinux"),
    library("CPostgres", pkgConfig: "libpq", package: "libpq-dev"),
    library("CLibCBOR", pkgConfig: "libcbor", package: "libcbor-dev"),
    library("CKeyutils", pkgConfig: "libkeyutils", package: "libkeyutils-dev"),
    library("CPNG", pkgConfig: "libpng", package: "libpng-dev"),
    library("CQREncode", pkgConfig: "libqrencode", package: "libqrencode-dev"),
    library("CTurboJPEG", pkgConfig: "libturbojpeg", package: "libturbojpeg0-dev"),

    target(.common, "ByteCoding"),
    target(.common, "GateWire"),
    target(
      .common, "CommandSupport",
      ["ByteCoding", "CLinux", "ProcessSignals", .product(name: "ArgumentParser", package: "swift-argument-parser")]),
    // Only this file is compiled again for each commit.
    .target(
      name: "CSourceCommit", path: Room.common.source("CSourceCommit"),
      cSettings: [.define("SALLYPORT_COMMIT", to: "\"\(commit)\"")]),
    target(.common, "ProgramVersion", ["CSourceCommit"]),
    target(.common, "Markup"),
    target(.common, "StandardPlaces"),
    target(.common, "ForwardProxies", ["ByteCoding"]),
    target(.common, "QREncoding", ["CQREncode"]),
    target(.common, "CBOR", ["CLibCBOR"]),
    target(.common, "Cryptography", ["ByteCoding", "COpenSSL", "Locking"]),
    target(.attestation, "Explanations", ["ByteCoding"]),
    target(.attestation, "AppAttest", ["ByteCoding", "CBOR", "Cryptography", "Explanations"]),
    target(.attestation, "AndroidKeyAttestation", ["ByteCoding", "Cryptography", "Explanations"]),
    target(
      .attestation, "Inspection", ["AndroidKeyAttestation", "AppAttest", "ByteCoding", "CBOR", "Cryptography"]),
    target(.common, "Locking"),
    target(.common, "GroupCommit", ["CLinux", "Locking"]),
    target(.common, "SQLiteFiles"),
    target(
      .gate, "AttestGate",
      ["AndroidKeyAttestation", "AppAttest", "ByteCoding", "Cryptography", "GateWire", "Locking"]),
    target(.gate, "Transport", ["ByteCoding"]),
    // OpenSSL calls these functions for each block of memory. A frame pointer would be a third of them. No library product
    // needs this target: packages with such flags cannot be dependencies of others.
    cTarget(
      .gate, "CRecordBuffers", ["COpenSSL"], settings: [.unsafeFlags(["-momit-leaf-frame-pointer"])]),
    target(
      .gate, "TransportEngine",
      ["Transport", "ByteCoding", "COpenSSL", "CLinux", "CRecordBuffers", "ForwardProxies", "Locking"]),
    target(
      .gate, "GateService",
      [
        "AndroidKeyAttestation", "AttestGate", "AppAttest", "ByteCoding", "Cryptography", "GateWire", "JSONLog",
        "Locking", "Markup", "Prometheus", "Telemetry", "Transport", .product(name: "Logging", package: "swift-log"),
      ]),
    target(.common, "Prometheus", ["Locking"]),
    target(.gate, "Telemetry", ["ByteCoding", "Locking", "Prometheus"]),
    target(.common, "JSONLog", ["ByteCoding", "Locking", .product(name: "Logging", package: "swift-log")]),
    target(
      .gate, "SQLiteStore",
      [
        "AndroidKeyAttestation", "AttestGate", "AppAttest", "ByteCoding", "Cryptography", "GroupCommit", "Locking",
        "ProcessSignals", "SQLiteFiles",
        .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    target(.common, "Postgres", ["CPostgres"]),
    target(
      .gate, "PostgresStore",
      ["AndroidKeyAttestation", "AttestGate", "AppAttest", "ByteCoding", "Cryptography", "Locking", "Postgres"]),
    target(.gate, "KeyTransfer", ["AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "Cryptography"]),
    target(.common, "YAMLSource", [.product(name: "Yams", package: "Yams")]),
    target(.gate, "Settings", ["ByteCoding", "CommandSupport", "StandardPlaces", "YAMLSource"]),
    target(
      .gate, "ACME",
      ["ByteCoding", "Cryptography", "ForwardProxies", "Locking", "ProcessSignals", "Transport", "TransportEngine"]),
    target(
      .gate, "Preflight",
      [
        "ACME", "AndroidKeyAttestation", "AttestGate", "ByteCoding", "Cryptography", "ForwardProxies", "Settings",
        "Transport", "TransportEngine",
      ]),
    target(.gate, "ClientAuthority", ["ByteCoding", "Cryptography"]),
    target(.common, "Systemd"),
    cTarget(.common, "CSignals"),
    cTarget(.common, "CEarlySignals"),
    target(.common, "ProcessSignals", ["CSignals", "Locking"]),
    cTarget(.gate, "CUpgradeChild"),
    target(.gate, "GracefulUpgrade", ["CUpgradeChild", "Locking"]),
    target(.signIn, "HTTPExchange", ["Locking"]),
    target(.signIn, "URLSessionExchange", ["HTTPExchange"]),
    target(
      .device, "AttestClient",
      [
        "ByteCoding", "GateWire", "HTTPExchange", "Locking", "URLSessionExchange",
        .target(name: "Cryptography", condition: .when(platforms: [.linux])),
      ]),
    target(.mfa, "MFAWire"),
    target(.device, "MFAClient", ["AttestClient", "ByteCoding", "Locking", "MFAWire"]),
    target(.device, "MFAViewModels", ["ByteCoding", "Locking", "MFAClient", "MFAWire"]),
    target(.device, "SimulatedPhone", ["ByteCoding", "CBOR", "Cryptography", "Locking", "MFAClient", "MFAWire"]),
    target(
      .device, "DeviceLab",
      [
        "ByteCoding", "Cryptography", "Locking", "MFAClient", "MFAViewModels", "MFAWire", "Markup", "QREncoding",
        "SimulatedPhone",
      ]),
    target(.device, "AndroidMint", ["ByteCoding", "Cryptography"]),
    target(
      .device, "SimulatedDevice",
      ["AndroidKeyAttestation", "AndroidMint", "AttestClient", "ByteCoding", "CBOR", "Cryptography", "Locking"]),
    target(
      .gate, "GateRuntime",
      [
        "ACME", "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "CLinux", "CommandSupport",
        "Cryptography", "ForwardProxies", "GateService", "GracefulUpgrade",
        "JSONLog", "Locking", "Postgres", "PostgresStore", "Preflight", "ProcessSignals", "ProgramVersion",
        "Prometheus", "SQLiteStore", "Settings", "Systemd", "Telemetry", "Transport", "TransportEngine",
        .product(name: "Logging", package: "swift-log"),
      ]),
    executable(
      .gate, "sallyport",
      [
        "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "CEarlySignals", "ClientAuthority",
        "CommandSupport", "Cryptography", "Explanations", "GateRuntime", "GateService", "KeyTransfer", "Locking",
        "Preflight", "ProcessSignals", "ProgramVersion", "QREncoding", "Settings", "SimulatedDevice", "StandardPlaces",
        "Transport", "TransportEngine",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    executable(.device, "attest", ["AttestTool", "CommandSupport", "ProcessSignals", "TransportEngine"]),
    target(
      .device, "AttestTool",
      [
        "AndroidKeyAttestation", "AndroidMint", "AttestClient", "ByteCoding", "CommandSupport", "Cryptography",
        "DeviceLab", "GateWire", "Inspection", "Locking", "MFAClient", "MFAViewModels", "MFAWire", "ProcessSignals",
        "ProgramVersion", "QREncoding", "SimulatedDevice", "SimulatedPhone", "Transport", "TransportEngine",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    support(.common, "TestSupport", ["Locking"]),
    support(
      .gate, "GateFixtures",
      ["AppAttest", "AttestGate", "ByteCoding", "Cryptography", "Locking", "SimulatedDevice", "SQLiteStore"]),
    support(
      .gate, "GateProcesses",
      ["ByteCoding", "Cryptography", "SimulatedDevice", "TestSupport", "Transport", "TransportEngine"]),
    support(.common, "PostgresServers", ["Locking", "TestSupport"]),
    support(.device, "GuideShim", ["AttestClient", "Cryptography", "Locking", "SimulatedDevice"]),
    program(.device, "guide-client", in: "GuideClient", ["GuideShim", "SimulatedDevice"]),
    program(
      .gate, "gate-bench", in: "GateBenchmark",
      [
        "AndroidKeyAttestation", "AndroidMint", "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "GateFixtures",
        "GateService", "GateWire", "JSONLog", "Locking", "Postgres", "PostgresStore", "SQLiteStore", "SimulatedDevice",
        "Transport", .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
      ]),
    support(
      .gate, "StoreConformance",
      ["AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "TestSupport"]),

    tests(
      .attestation, "AppAttestMintedTests", ["AppAttest", "ByteCoding", "CBOR", "Cryptography", "SimulatedDevice"]),
    tests(
      .attestation, "AppAttestTests",
      ["AppAttest", "ByteCoding", "CBOR", "Cryptography", "Explanations", "SimulatedDevice", "TestSupport"]),
    tests(
      .attestation, "AndroidKeyAttestationTests",
      [
        "AndroidKeyAttestation", "AndroidMint", "ByteCoding", "CBOR", "Cryptography", "Explanations", "TestSupport",
      ]),
    tests(
      .signIn, "URLSessionExchangeTests",
      ["HTTPExchange", "TestSupport", "Transport", "TransportEngine", "URLSessionExchange"]),
    tests(
      .device, "AttestClientTests",
      [
        "AndroidKeyAttestation", "AttestClient", "ByteCoding", "Cryptography", "GateWire", "Locking", "SimulatedDevice",
        "TestSupport", "Transport", "TransportEngine",
      ]),
    tests(
      .gate, "AttestGateTests",
      [
        "AndroidKeyAttestation", "AndroidMint", "AppAttest", "AttestGate", "ByteCoding", "CBOR", "Cryptography",
        "GateFixtures", "GateWire", "Locking", "SimulatedDevice", "SQLiteStore", "StoreConformance", "TestSupport",
      ]),
    tests(
      .attestation, "InspectionTests",
      ["AndroidMint", "ByteCoding", "CBOR", "Cryptography", "Inspection", "SimulatedDevice", "TestSupport"]),
    tests(
      .device, "AttestToolTests",
      [
        "AndroidKeyAttestation", "AttestTool", "AttestClient", "ByteCoding", "CommandSupport", "Cryptography",
        "GateWire", "SimulatedDevice", "Transport", "TransportEngine", "attest", "sallyport",
        "Locking", "TestSupport",
      ]),
    tests(
      .gate, "ACMETests",
      [
        "ACME", "ByteCoding", "Cryptography", "ForwardProxies", "GateProcesses", "Locking", "PostgresServers",
        "SimulatedDevice", "TestSupport", "Transport", "TransportEngine", "attest", "sallyport",
      ]),
    tests(.common, "ByteCodingTests", ["ByteCoding"]),
    tests(
      .gate, "ClusterTests",
      [
        "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "GateProcesses", "Locking",
        "Postgres", "PostgresServers", "PostgresStore", "SQLiteStore", "SimulatedDevice", "StoreConformance",
        "TestSupport", "Transport", "TransportEngine", "attest", "sallyport",
      ]),
    tests(.common, "CBORTests", ["CBOR", "ByteCoding", "TestSupport"]),
    tests(.gate, "ConformanceTests", ["GateProcesses", "SimulatedDevice", "TestSupport", "sallyport"]),
    tests(.common, "CertificateIssuingTests", ["ByteCoding", "Cryptography", "TestSupport"]),
    tests(.common, "CryptographyTests", ["Cryptography", "ByteCoding", "TestSupport"]),
    tests(
      .gate, "EndToEndTests",
      [
        "AndroidMint", "AttestGate", "ByteCoding", "Cryptography", "GateWire", "Locking", "SimulatedDevice",
        "TestSupport", "Transport", "TransportEngine", "attest", "sallyport",
        .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    tests(
      .gate, "GateServiceTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "GateFixtures", "GateService", "GateWire", "JSONLog",
        "Locking", "Markup", "Prometheus", "SimulatedDevice", "SQLiteStore", "Telemetry", "TestSupport", "Transport",
        .product(name: "Logging", package: "swift-log"),
      ]),
    tests(
      .device, "GuideTests",
      [
        "GateProcesses", "SimulatedDevice", "TestSupport", "Transport", "TransportEngine", "guide-client", "attest",
        "sallyport",
      ]),
    tests(
      .gate, "OperatorTests",
      [
        "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "Cryptography", "GateProcesses",
        "GateService", "KeyTransfer", "Locking", "PostgresServers", "SQLiteStore", "SimulatedDevice", "TestSupport",
        "Transport", "TransportEngine", "attest", "sallyport", .product(name: "Logging", package: "swift-log"),
      ]),
    tests(
      .gate, "GateRuntimeTests",
      [
        "ACME", "AndroidKeyAttestation", "AppAttest", "AttestGate", "ByteCoding", "CommandSupport", "Cryptography",
        "ForwardProxies", "GateFixtures", "GateRuntime", "GateService", "GracefulUpgrade", "JSONLog", "Locking",
        "Preflight", "Prometheus", "SQLiteStore", "Settings", "SimulatedDevice", "StoreConformance", "Systemd",
        "TestSupport", "Transport", "TransportEngine",
        .product(name: "GRDB", package: "GRDB.swift"), .product(name: "Logging", package: "swift-log"),
      ]),
    tests(.common, "JSONLogTests", ["JSONLog", "ByteCoding", .product(name: "Logging", package: "swift-log")]),
    tests(
      .gate, "LoadTests",
      [
        "ByteCoding", "Cryptography", "GateProcesses", "Locking", "PostgresServers", "SimulatedDevice", "TestSupport",
        "Transport", "TransportEngine", "attest", "sallyport",
      ]),
    tests(
      .gate, "SQLiteStoreTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "GateFixtures", "SQLiteStore", "StoreConformance",
        .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    tests(
      .gate, "PostgresStoreTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "Postgres", "PostgresServers", "PostgresStore", "SimulatedDevice",
        "StoreConformance", "TestSupport",
      ]),
    tests(
      .gate, "StoreCommandTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "Postgres", "PostgresServers", "PostgresStore", "SQLiteStore",
        "SimulatedDevice",
        "StoreConformance", "TestSupport", "sallyport", .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    tests(.common, "LockingTests", ["Locking"]),
    tests(.common, "GroupCommitTests", ["GroupCommit", "Locking"]),
    tests(.common, "PrometheusTests", ["Prometheus"]),
    tests(
      .device, "MFAClientTests", ["AttestClient", "ByteCoding", "Locking", "MFAClient", "MFAWire", "SimulatedDevice"]),
    tests(
      .device, "MFAViewModelsTests",
      [
        "AttestClient", "ByteCoding", "Cryptography", "Locking", "MFAClient", "MFAViewModels", "MFAWire",
        "SimulatedPhone",
      ]),
    tests(
      .device, "DeviceLabTests",
      ["ByteCoding", "DeviceLab", "Locking", "MFAClient", "MFAViewModels", "MFAWire", "SimulatedPhone"]),
    tests(
      .device, "SimulatedPhoneTests",
      ["ByteCoding", "Cryptography", "MFAClient", "MFAWire", "SimulatedPhone", "TestSupport"]),
    tests(
      .gate, "PreflightTests",
      [
        "AttestGate", "ByteCoding", "Cryptography", "ForwardProxies", "Preflight", "SQLiteStore", "Settings",
        "SimulatedDevice",
        "TestSupport", "Transport", "TransportEngine",
      ]),
    tests(.gate, "ClientAuthorityTests", ["ByteCoding", "ClientAuthority", "Cryptography", "TestSupport"]),
    tests(
      .gate, "ObservabilityTests",
      [
        "AppAttest", "AttestGate", "ByteCoding", "GateProcesses", "GateService", "GateWire", "SimulatedDevice",
        "TestSupport", "Transport", "TransportEngine", "attest", "sallyport",
      ]),
    tests(.gate, "TelemetryTests", ["ByteCoding", "Prometheus", "Telemetry"]),
    tests(.gate, "PackagingTests", ["sallyport", "attest", "TestSupport"]),
    tests(.common, "StandardPlacesTests", ["StandardPlaces"]),
    tests(.common, "ForwardProxiesTests", ["ByteCoding", "ForwardProxies", "TestSupport"]),
    tests(.common, "SystemdTests", ["Systemd", "TestSupport"]),
    tests(.common, "ProcessSignalsTests", ["ProcessSignals", "Locking", "TestSupport"]),
    tests(.gate, "GracefulUpgradeTests", ["GracefulUpgrade", "Systemd", "TestSupport"]),
    tests(.gate, "CheckCommandTests", ["sallyport", "ByteCoding", "SimulatedDevice", "TestSupport"]),
    tests(.gate, "SettingsTests", ["ByteCoding", "CommandSupport", "Settings", "TestSupport"]),
    tests(
      .device, "SimulatedDeviceTests",
      [
        "AndroidKeyAttestation", "AndroidMint", "AppAttest", "AttestClient", "ByteCoding", "Cryptography",
        "SimulatedDevice", "Locking",
      ]),
    tests(
      .gate, "TransportEngineTests",
      [
        "TransportEngine", "Transport", "ByteCoding", "COpenSSL", "ClientAuthority", "Cryptography", "ForwardProxies",
        "Locking", "SimulatedDevice", "TestSupport",
      ]),
    tests(
      .gate, "VerifyCommandTests",
      ["sallyport", "AndroidMint", "AppAttest", "ByteCoding", "Cryptography", "SimulatedDevice", "TestSupport"]),
  ]
)

let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let cryptoExtras = Target.Dependency.product(name: "CryptoExtras", package: "swift-crypto")
let jwtKit = Target.Dependency.product(name: "JWTKit", package: "jwt-kit")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let httpClient = Target.Dependency.product(name: "AsyncHTTPClient", package: "async-http-client")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore = Target.Dependency.product(name: "HummingbirdCore", package: "hummingbird")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let nio = ["NIOCore", "NIOPosix", "NIOHTTP1", "NIOWebSocket"].map {
  Target.Dependency.product(name: $0, package: "swift-nio")
}
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")

if !gateOnly {
  package.dependencies += [
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
  ]
  package.targets += [
    target(.authenticator, "OneTimePasswords", ["ByteCoding", crypto]),
    target(.authenticator, "AuthenticatorVault", ["OneTimePasswords", crypto, cryptoExtras]),
    .target(
      name: "VaultFormats",
      dependencies: [
        "AuthenticatorVault", "ByteCoding", "OneTimePasswords", crypto, cryptoExtras,
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ], path: Room.authenticator.source("VaultFormats"), exclude: ["OTPMigration.proto"], swiftSettings: settings),
    target(
      .authenticator, "VaultSync",
      ["AuthenticatorVault", "Locking", .target(name: "ProcessSignals", condition: .when(platforms: [.linux]))]),
    .target(
      name: "CZXing", path: Room.authenticator.source("CZXing"),
      linkerSettings: [.linkedLibrary("ZXing")]),
    target(.authenticator, "QRCodes", ["CPNG", "CTurboJPEG", "CZXing", "QREncoding"]),
    target(
      .signIn, "OIDCClient",
      [
        "ByteCoding", "HTTPExchange", "Locking", crypto, cryptoExtras, jwtKit,
        .target(name: "ProcessSignals", condition: .when(platforms: [.linux])),
      ]),
  ]
}

if !gateOnly && !fuzzing {
  package.dependencies += [
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ]
  package.products += [
    .library(name: "OneTimePasswords", targets: ["OneTimePasswords"]),
    .library(name: "AuthenticatorVault", targets: ["AuthenticatorVault"]),
    .library(name: "VaultFormats", targets: ["VaultFormats"]),
    .library(name: "VaultSync", targets: ["VaultSync"]),
    .library(name: "QRCodes", targets: ["QRCodes"]),
    .library(name: "OIDCClient", targets: ["OIDCClient"]),
  ]
  package.targets += [
    tests(
      .authenticator, "VaultFormatsTests",
      ["AuthenticatorVault", "ByteCoding", "OneTimePasswords", "TestSupport", "VaultFormats"]),
    tests(
      .signIn, "OIDCClientTests", ["ByteCoding", "HTTPExchange", "Locking", "OIDCClient", "TestSupport", crypto]),
    target(
      .signIn, "HTTPClientTransport",
      [
        "ForwardProxies", "HTTPExchange", "Locking", crypto, httpClient, nioSSL,
        .product(name: "NIOTLS", package: "swift-nio"),
      ] + nio),
    tests(
      .signIn, "HTTPClientTransportTests",
      ["Cryptography", "ForwardProxies", "HTTPClientTransport", "HTTPExchange", "OIDCClient", "TestSupport", crypto]),
    target(.signIn, "BearerSettings", ["ByteCoding", "OIDCClient", "YAMLSource"]),
    tests(.signIn, "BearerSettingsTests", ["BearerSettings", "OIDCClient", "TestSupport"]),
    library("CLibSecret", pkgConfig: "libsecret-1", package: "libsecret-1-dev"),
    target(.signIn, "SecretService", ["CLibSecret"]),
    program(.signIn, "keyring-probe", in: "KeyringProbe", ["SecretService"]),
    tests(.signIn, "SecretServiceTests", ["TestSupport", "keyring-probe"]),
    target(
      .signIn, "BearerTool",
      [
        "BearerSettings", "ByteCoding", "CommandSupport", "ForwardProxies", "HTTPClientTransport", "HTTPExchange",
        "OIDCClient", "ProgramVersion", "QREncoding", "SecretService",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ] + nio),
    tests(
      .signIn, "BearerToolTests",
      ["BearerTool", "HTTPExchange", "OIDCClient", "TestSupport", "URLSessionExchange", "bearer"]),
    executable(.signIn, "bearer", ["BearerTool", "CommandSupport", "ProcessSignals"]),
    tests(.authenticator, "QRCodesTests", ["QRCodes", "QREncoding", "TestSupport"]),
    target(
      .authenticator, "AuthenticatorTool",
      [
        "AuthenticatorVault", "ByteCoding", "CKeyutils", "CommandSupport", "OneTimePasswords", "ProcessSignals",
        "ProgramVersion", "QRCodes", "QREncoding", "VaultFormats", "VaultSync",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    executable(.authenticator, "authenticator", ["AuthenticatorTool", "CommandSupport", "ProcessSignals"]),
    tests(
      .authenticator, "AuthenticatorToolTests",
      [
        "AuthenticatorTool", "AuthenticatorVault", "ByteCoding", "CommandSupport", "OneTimePasswords", "QRCodes",
        "QREncoding", "TestSupport", "VaultFormats", "authenticator", crypto,
      ]),
    tests(
      .authenticator, "VaultSyncTests",
      ["AuthenticatorVault", "OneTimePasswords", "VaultSync", "Locking", "TestSupport", crypto]),
    tests(.authenticator, "OneTimePasswordsTests", ["OneTimePasswords", "TestSupport"]),
    tests(
      .authenticator, "AuthenticatorVaultTests", ["AuthenticatorVault", "OneTimePasswords", "TestSupport", crypto]),
    target(.mfa, "MFADomain", ["ByteCoding", "CBOR", "Locking", "OneTimePasswords", crypto, cryptoExtras]),
    target(
      .mfa, "MFAStore",
      [
        "MFADomain", "ByteCoding", "GroupCommit", "Locking", "OneTimePasswords", "Postgres", "SQLiteFiles", crypto,
        grdb,
        .product(name: "GRDBSQLite", package: "GRDB.swift"),
      ]),
    target(.mfa, "ConnectionFaults", [httpClient] + nio + [nioSSL]),
    target(
      .mfa, "MFATokens",
      [
        "ConnectionFaults", "MFADomain", "ByteCoding", "ForwardProxies", "Locking", "HTTPClientTransport",
        "HTTPExchange", "OIDCClient", crypto, httpClient,
      ] + nio
        + [nioSSL, logging]),
    target(
      .mfa, "MFADelivery",
      [
        "ConnectionFaults", "ForwardProxies", "HTTPClientTransport", "HTTPExchange", "MFADomain", "ByteCoding",
        "JSONLog", "Locking", httpClient, lifecycle, logging, metrics, nioSSL,
      ] + nio),
    target(
      .mfa, "MFAService",
      [
        "MFADomain", "MFATokens", "MFAWire", "ByteCoding", "Locking", "OneTimePasswords", "ProgramVersion", hummingbird,
        hummingbirdCore, lifecycle, logging, metrics,
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "NIOExtras", package: "swift-nio-extras"),
        .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
        .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
      ] + nio),
    target(.mfa, "MFASettings", ["ByteCoding", "MFADomain", "YAMLSource"]),
    target(.mfa, "MFAMetrics", ["Locking", "Prometheus", metrics]),
    executable(
      .mfa, "mfa-backend",
      [
        "ConnectionFaults", "ForwardProxies", "HTTPExchange", "MFADomain", "MFAStore", "MFATokens", "MFADelivery",
        "MFAService",
        "MFASettings", "MFAMetrics", "JSONLog", "ByteCoding", "CEarlySignals", "CommandSupport", "Locking", "Postgres",
        "ProcessSignals", "ProgramVersion", "Prometheus", "StandardPlaces", "Systemd", httpClient, lifecycle, logging,
        metrics,
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ] + nio),
    support(
      .mfa, "MFAFixtures",
      [
        "MFADomain", "MFAStore", "MFATokens", "MFAService", "MFAWire", "ByteCoding", "CBOR", "Locking", "OIDCClient",
        "TestSupport", crypto, cryptoExtras, jwtKit, httpClient, logging,
      ] + nio),
    program(
      .mfa, "mfa-bench", in: "MFABenchmark",
      [
        "ByteCoding", "PostgresServers", "TestSupport", crypto, httpClient,
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ] + nio),
    tests(.mfa, "MFASettingsTests", ["MFASettings", "TestSupport"]),
    tests(
      .mfa, "MFADomainTests",
      [
        "MFADomain", "MFAFixtures", "MFAStore", "ByteCoding", "CBOR", "Locking", "OneTimePasswords", "TestSupport",
        crypto,
      ]),
    tests(
      .mfa, "MFAServiceTests",
      [
        "MFADomain", "MFAFixtures", "MFAService", "MFAStore", "MFATokens", "MFAWire", "ByteCoding", "Locking",
        "OIDCClient", "OneTimePasswords", "Postgres", "PostgresServers", "TestSupport", crypto, logging, grdb,
      ] + nio),
    tests(
      .mfa, "MFACommandTests",
      ["ByteCoding", "MFADomain", "MFAFixtures", "PostgresServers", "TestSupport", "mfa-backend"]),
    tests(
      .mfa, "MFAEndToEndTests",
      [
        "AttestClient", "AttestTool", "ByteCoding", "GateProcesses", "Locking", "MFAClient", "MFADomain", "MFAFixtures",
        "MFAStore", "MFAViewModels", "MFAWire", "PostgresServers", "QRCodes", "QREncoding", "SimulatedDevice",
        "SimulatedPhone",
        "TestSupport", "TransportEngine", crypto, "attest", "authenticator", "mfa-backend", "sallyport",
      ]),
    tests(
      .mfa, "MFADeliveryTests",
      [
        "ForwardProxies", "MFADelivery", "MFADomain", "MFAFixtures", "ByteCoding", "Locking", "TestSupport",
        hummingbird, lifecycle,
        logging,
      ]),
  ]
}

package.cxxLanguageStandard = .cxx17

// For work on the backend alone: the gate's tests take minutes to build.
if Context.environment["SALLYPORT_MFA_ONLY"] == "1" {
  package.targets.removeAll { $0.type == .test && !$0.name.hasPrefix("MFA") }
}

/// The targets that the given ones need, and these.
@MainActor func needed(by names: Set<String>) -> Set<String> {
  var (needed, open) = (names, names)
  while let name = open.popFirst() {
    for dependency in package.targets.first(where: { $0.name == name })?.dependencies ?? [] {
      switch dependency {
      case .byNameItem(let next, _), .targetItem(let next, _):
        if needed.insert(next).inserted { open.insert(next) }
      default: break
      }
    }
  }
  return needed
}

// What CI builds under a sanitizer, `scripts/test --sanitize core`: the tests of what threads share, and what they
// need.
if Context.environment["SALLYPORT_CORE_ONLY"] == "1" {
  let core = needed(by: [
    "AttestGateTests", "GateServiceTests", "GroupCommitTests", "JSONLogTests", "LockingTests", "PrometheusTests",
    "SQLiteStoreTests", "TransportEngineTests",
  ])
  package.products = []
  package.targets.removeAll { !core.contains($0.name) }
}

// For work on some test targets, for example `SALLYPORT_TESTS=MFACommandTests,MFASettingsTests`.
if let names = Context.environment["SALLYPORT_TESTS"] {
  let kept = needed(by: Set(names.split(separator: ",").map(String.init)))
  package.products = []
  package.targets.removeAll { !kept.contains($0.name) }
}

// For work on one room, for example `SALLYPORT_ROOM=SignIn`.
if let name = Context.environment["SALLYPORT_ROOM"] {
  let room = needed(by: Set(package.targets.filter { $0.path?.contains("/\(name)/") == true }.map(\.name)))
  package.products = []
  package.targets.removeAll { !room.contains($0.name) }
}

if fuzzing {
  package.products = [.library(name: "Fuzzing", type: .static, targets: ["Fuzzing"])]
  package.targets.removeAll { $0.type == .test }
  package.targets.append(
    support(
      .gate, "Fuzzing",
      [
        "AndroidKeyAttestation", "AndroidMint", "AppAttest", "AttestGate", "AuthenticatorVault", "ByteCoding", "CBOR",
        "COpenSSL", "Cryptography", "Explanations", "ForwardProxies", "GateService", "Inspection", "OIDCClient",
        "OneTimePasswords", "QRCodes", "QREncoding", "Settings", "SimulatedDevice", "Transport", "TransportEngine",
        "VaultFormats", "VaultSync",
      ]))
}
