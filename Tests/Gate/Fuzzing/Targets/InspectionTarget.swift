import Inspection

extension FuzzTarget {
  static let inspection = FuzzTarget(
    name: "inspection", longest: 8192, words: ["-----BEGIN CERTIFICATE-----", "eyJ", "fmt", "DPoP: ", "\"chain\":["],
    seeds: { Fixtures.shared.attestations + Fixtures.shared.assertions + Fixtures.shared.receipts },
    accepts: InspectionInvariants.check)
}

/// What `attest inspect` shows of any bytes: bounded, and with each fault at a place of the tree.
enum InspectionInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    let inspection: Inspection
    do throws(InspectionError) {
      inspection = try Inspection(input)
    } catch {
      if case .unrecognized(let offset, _) = error {
        try require((0...input.count).contains(offset), "the offset is in the input", "\(offset)")
      }
      return false
    }
    let nodes = inspection.parts.flatMap(\.flattened)
    try require(nodes.count <= 20_000, "the number of parts is bounded", "\(nodes.count)")
    try require(nodes.allSatisfy { $0.depth <= 256 }, "the depth is bounded")
    for (_, node) in nodes {
      try require(node.offset >= 0 && node.header >= 0 && node.length >= 0, "places are not negative", node.name)
      try require((node.value?.utf8.count ?? 0) <= 4096, "a value is shortened", node.name)
    }
    for node in inspection.parts {
      try require(node.offset <= inspection.size, "a part begins in the input", node.name)
    }
    try require(
      inspection.faults.count == nodes.count { $0.node.fault != nil }, "each fault stands at its part")
    return inspection.faults.isEmpty
  }
}
