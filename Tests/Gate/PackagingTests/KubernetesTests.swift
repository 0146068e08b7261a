import Foundation
import TestSupport
import Testing

/// Checks the Kubernetes manifest against a running gate. `PackageTests` checks it against the schemas of Kubernetes.
@Suite("The Kubernetes manifest", .timeLimit(.minutes(2)))
struct KubernetesTests {
  /// The objects of the manifest, by their kind.
  private func objects() async throws -> [String: Object] {
    let program = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))"
    let (exit, output, errors) = try await ChildProcess.run(
      "/usr/bin/python3", ["-c", program], input: Array(try ProjectFile.text("config/kubernetes.yaml").utf8))
    try #require(exit == .code(0), "\(errors)")
    let objects = try JSONDecoder().decode([Object].self, from: Data(output.joined().utf8))
    return Dictionary(uniqueKeysWithValues: objects.map { ($0.kind, $0) })
  }

  struct Object: Decodable {
    struct Spec: Decodable {
      let template: Template?
      let ports: [ServicePort]?
    }
    struct ServicePort: Decodable { let targetPort: String }
    struct Template: Decodable { let spec: Pod }
    struct Pod: Decodable {
      let terminationGracePeriodSeconds: Int
      let securityContext: [String: Setting]
      let containers: [Container]
      let volumes: [Volume]
    }
    struct Container: Decodable {
      let ports: [Port]
      let startupProbe, livenessProbe, readinessProbe: Probe
      let securityContext: [String: Setting]
      let volumeMounts: [Mount]
    }
    struct Port: Decodable {
      let name: String
      let containerPort: Int
    }
    struct Probe: Decodable {
      struct Get: Decodable { let path, port: String }
      let httpGet: Get
    }
    struct Mount: Decodable { let name, mountPath: String }
    struct Volume: Decodable {
      struct Secret: Decodable { let defaultMode: Int }
      let name: String
      let secret: Secret?
    }
    /// A value of a security context; only truth values and numbers matter here.
    struct Setting: Decodable, Equatable {
      let number: Int?
      init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        number = try? (try? value.decode(Bool.self)).map { $0 ? 1 : 0 } ?? value.decode(Int.self)
      }
    }
    let kind: String
    let data: [String: String]?
    let spec: Spec?
  }

  private func status(of path: String, port: UInt16) async throws -> String {
    let (_, output, _) = try await ChildProcess.run(
      Places.tool("curl"),
      ["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "http://127.0.0.1:\(port)\(path)"])
    return output.joined()
  }

  @Test("Paths and ports of the manifest fit to each other, and the pod runs without rights")
  func consistency() async throws {
    let objects = try await objects()
    let configuration = try #require(objects["ConfigMap"]?.data?["sallyport.yaml"])
    let pod = try #require(objects["Deployment"]?.spec?.template?.spec)
    let container = try #require(pod.containers.first)
    let mounts = Dictionary(uniqueKeysWithValues: container.volumeMounts.map { ($0.mountPath, $0.name) })
    for file in configuration.matches(of: /(?:_file: |unix:)(\/[^ \n]+)\/[^\/ \n]+/) {
      #expect(mounts[String(file.output.1)] != nil, "\(file.output.1)")
    }
    #expect(Set(mounts.values) == Set(pod.volumes.map(\.name)))
    // Readable for the owner and the group of the pod, and for no other.
    #expect(pod.volumes.compactMap(\.secret?.defaultMode) == [0o440, 0o440])
    let ports = Dictionary(uniqueKeysWithValues: container.ports.map { ($0.name, $0.containerPort) })
    let metrics = try #require(ports["metrics"])
    #expect(ports["wss"] == 6200 && configuration.contains("listen: \"[::]:\(metrics)\""))
    #expect(objects["Service"]?.spec?.ports?.map(\.targetPort) == ["wss"])
    #expect(pod.securityContext["runAsNonRoot"]?.number == 1 && pod.securityContext["runAsUser"]?.number == 65532)
    #expect(container.securityContext["readOnlyRootFilesystem"]?.number == 1)
    #expect(container.securityContext["allowPrivilegeEscalation"]?.number == 0)
  }

  @Test("A gate with the manifest's configuration answers its probes, and stops within the grace period")
  func probes() async throws {
    let objects = try await objects()
    let pod = try #require(objects["Deployment"]?.spec?.template?.spec)
    let container = try #require(pod.containers.first)
    let given = try #require(objects["ConfigMap"]?.data?["sallyport.yaml"])
    let times = given.matches(of: /(?:unready_delay|drain_timeout): (\d+)s/).compactMap { Int($0.output.1) }
    #expect(times.count == 2 && times.reduce(0, +) < pod.terminationGracePeriodSeconds)
    try await Places.withTemporaryFolder { folder in
      let (made, _, errors) = try await ChildProcess.run(
        Places.tool("openssl"),
        [
          "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-x509", "-subj", "/CN=localhost",
          "-keyout", folder + "/tls.key", "-out", folder + "/tls.crt",
        ])
      try #require(made == .code(0), "\(errors)")
      let port = try Places.freePort()
      // Here without PostgreSQL, on loopback and on free ports, and with a shorter time until clients notice.
      let configuration =
        given
        .replacing("/etc/sallyport-tls", with: folder).replacing("/run/sallyport", with: folder)
        .replacing("postgres://sallyport@postgres/sallyport", with: "sqlite://\(folder)/state.db")
        .replacing(/(?m)^ +password_file: .*\n/, with: "").replacing("[::]:9464", with: "127.0.0.1:\(port)")
        .replacing(/unready_delay: \d+s/, with: "unready_delay: 5s")
        + "listen: { address: 127.0.0.1, port: 0 }\n"
      try configuration.write(toFile: folder + "/sallyport.yaml", atomically: true, encoding: .utf8)
      let gate = try ChildProcess(Places.product("sallyport"), ["run", "-c", folder + "/sallyport.yaml"])
      defer { gate.kill() }
      _ = try await gate.errors.first("the gate listens") { $0.contains(#""message":"listening""#) }
      for probe in [container.startupProbe, container.livenessProbe, container.readinessProbe] {
        #expect(probe.httpGet.port == "metrics")
        #expect(try await status(of: probe.httpGet.path, port: port) == "200", "\(probe.httpGet.path)")
      }
      gate.send(SIGTERM)
      _ = try await gate.errors.first("the gate stops") { $0.contains(#""message":"stopping""#) }
      #expect(try await status(of: container.readinessProbe.httpGet.path, port: port) == "503")
      #expect(try await status(of: container.livenessProbe.httpGet.path, port: port) == "200")
      #expect(try await gate.exit(within: .seconds(30)) == .code(0))
    }
  }
}
