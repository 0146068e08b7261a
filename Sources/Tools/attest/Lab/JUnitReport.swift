internal import ByteCoding

/// Reports of scenarios in the XML that CI servers read.
public enum JUnitReport {
  /// A report with the time that the scenario took.
  public struct Case: Sendable, Hashable {
    /// What came of it.
    public let report: ScenarioReport
    /// How requests reached the server, for example `rest`.
    public let way: String
    /// How long it took.
    public let duration: Duration

    /// Creates a case.
    public init(report: ScenarioReport, way: String, duration: Duration) {
      self.report = report
      self.way = way
      self.duration = duration
    }
  }

  /// The document: one suite with a case for each scenario.
  public static func document(_ cases: [Case]) -> String {
    let failures = cases.count { !$0.report.hasPassed }
    let time = cases.reduce(Duration.zero) { $0 + $1.duration }
    var text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    text +=
      "<testsuite name=\"device lab\" tests=\"\(cases.count)\" failures=\"\(failures)\" time=\"\(seconds(time))\">\n"
    for item in cases {
      let name = "\(item.report.id) \(item.report.title)"
      text +=
        "  <testcase classname=\"\(escaped(item.way))\" name=\"\(escaped(name))\" time=\"\(seconds(item.duration))\""
      if let step = item.report.failedStep {
        text +=
          ">\n    <failure message=\"\(escaped(step.failure ?? ""))\">\(escaped(step.text))</failure>\n  </testcase>\n"
      } else {
        text += "/>\n"
      }
    }
    return text + "</testsuite>\n"
  }

  /// Seconds with three decimals.
  private static func seconds(_ duration: Duration) -> String {
    let milliseconds = duration / .milliseconds(1)
    let whole = Int(milliseconds.rounded())
    let fraction = String(whole % 1000)
    return "\(whole / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
  }

  /// `text` without characters that XML 1.0 (section 2.2) forbids, and with its markup escaped.
  private static func escaped(_ text: String) -> String {
    var allowed = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\t", "\n", "\r", " "..."\u{D7FF}", "\u{E000}"..."\u{FFFD}", "\u{10000}"..."\u{10FFFF}":
        allowed.unicodeScalars.append(scalar)
      default: allowed += "\u{FFFD}"
      }
    }
    return HTML.escaped(allowed)
  }
}
