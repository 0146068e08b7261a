/// The results of a probe, for programs and for people.
struct ProbeReport: Sendable, Encodable {
  let url: String
  let findings: [Finding]
  /// Attacks that were not tried for want of a device that the gate knows.
  let skipped: Int

  var countOfThrough: Int { findings.count { $0.verdict == .through } }

  var countOfUnclear: Int { findings.count { $0.verdict == .unclear } }

  /// A table with a row for each attack, and a last line with the summary.
  var text: String {
    let rows = findings.map { [$0.group, $0.attack, $0.expected, $0.seen, Self.word(for: $0.verdict)] }
    let table = [["group", "attack", "expected", "seen", "verdict"]] + rows
    let widths = (0..<5).map { column in table.map { $0[column].count }.max() ?? 0 }
    let lines = table.map { row in
      zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(separator: "  ")
        .trimmingTrailingSpaces
    }
    return (lines + ["", summary]).joined(separator: "\n") + "\n"
  }

  private static func word(for verdict: Finding.Verdict) -> String {
    verdict == .through ? "THROUGH" : verdict.rawValue
  }

  private var summary: String {
    let through = countOfThrough
    let differing = findings.count { $0.verdict == .differs }
    let unclear = countOfUnclear
    let parts = [
      "\(findings.count) attacks", through == 0 ? "none got through" : "\(through) GOT THROUGH",
      differing == 0 ? nil : "\(differing) refused otherwise than expected",
      unclear == 0 ? nil : "\(unclear) unclear: the gate was too busy, or gave no answer that can be read",
      skipped == 0 ? nil : "\(skipped) not tried: they need --authority",
    ]
    return parts.compactMap(\.self).joined(separator: ", ")
  }
}

extension String {
  fileprivate var trimmingTrailingSpaces: String {
    String(reversed().drop { $0 == " " }.reversed())
  }
}
