// certificates FOLDER SECONDS: repeatedly validates FOLDER/leaf.der through FOLDER/intermediate.der to
// FOLDER/root.pem with swift-certificates. Parses both certificates each time, and prints one JSON object.
import Foundation
import X509

let folder = URL(fileURLWithPath: CommandLine.arguments[1])
let seconds = Double(CommandLine.arguments[2]) ?? 5
let leaf = try Array(Data(contentsOf: folder.appendingPathComponent("leaf.der")))
let intermediate = try Array(Data(contentsOf: folder.appendingPathComponent("intermediate.der")))
let root = try Certificate(
  pemEncoded: String(contentsOf: folder.appendingPathComponent("root.pem"), encoding: .utf8))
let roots = CertificateStore([root])

func validate() async throws -> Bool {
  let certificates = try [leaf, intermediate].map { try Certificate(derEncoded: $0) }
  var verifier = Verifier(rootCertificates: roots) { RFC5280Policy() }
  let result = await verifier.validate(
    leaf: certificates[0], intermediates: CertificateStore([certificates[1]]))
  if case .validCertificate = result { return true }
  print("error: not a valid chain: \(result)")
  return false
}

func cpu() -> Double {
  var usage = rusage()
  getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
  func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
  return seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

guard try await validate() else { exit(1) }
let start = Date()
let before = cpu()
var count = 0
while Date().timeIntervalSince(start) < seconds {
  guard try await validate() else { exit(1) }
  count += 1
}
let used = cpu() - before
print(
  "{\"operations\": \(count), \"cpu_us\": \(used * 1e6 / Double(count)), "
    + "\"per_second_and_core\": \(Double(count) / used)}")
