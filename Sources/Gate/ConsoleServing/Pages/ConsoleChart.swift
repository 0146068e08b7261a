public import ByteCoding

/// A chart of the last minutes, with a bar for each minute and the series on top of each other.
public struct ConsoleChart: Sendable {
  /// One series of a chart.
  public struct Series: Sendable {
    let name: String
    let tone: Tone
    let values: [UInt64]

    /// - Parameter values: A value for each minute, the oldest first.
    public init(_ name: String, _ tone: Tone, _ values: [UInt64]) {
      (self.name, self.tone, self.values) = (name, tone, values)
    }
  }

  /// The color of a series.
  public enum Tone: String, Sendable, CaseIterable {
    case good, s0, s1, s2, s3, s4, s5

    /// The colors of faults, in their order.
    public static let faults: [Tone] = [.s0, .s1, .s2, .s3, .s4, .s5]
  }

  private let title: String
  private let series: [Series]
  /// Whether a legend has the sums of the series, and not their last values.
  private let isSum: Bool

  public init(_ title: String, _ series: [Series], isSum: Bool = true) {
    (self.title, self.series, self.isSum) = (title, series, isSum)
  }

  private static let (minutes, width, height) = (60, UInt64(600), UInt64(100))

  private func figure(_ series: Series) -> UInt64 {
    isSum ? series.values.reduce(0, &+) : series.values.last ?? 0
  }

  /// The number of minutes that the chart has.
  private var count: Int { min(Self.minutes, series.map(\.values.count).max() ?? 0) }

  /// Returns the values of the series `age` minutes before the last one.
  private func values(_ age: Int) -> [UInt64] {
    series.map { $0.values.count > age ? $0.values[$0.values.count - 1 - age] : 0 }
  }

  private var most: UInt64 { (0..<count).map { values($0).reduce(0, &+) }.max() ?? 0 }

  public var card: HTML {
    let texts = series.map { "\($0.name) \(figure($0))" }
    let legend = zip(series, texts).map { series, text -> HTML in
      #"<li><i class="fill-\#(series.tone.rawValue)"></i>\#(text)</li>"#
    }
    let label = "\(title): " + (texts.isEmpty ? "none" : texts.joined(separator: ", "))
    return """
      <section class="card chart"><h2>\(title)</h2><ul class="legend">\(legend)</ul>
      <svg viewBox="0 0 \(Self.width) \(Self.height)" preserveAspectRatio="none" role="img" aria-label="\(label)">\(bars)\
      </svg>
      <div class="axis quiet"><span>60 min ago</span><span>at most \(most)\(isSum ? " a minute" : "")</span><span>now</span></div></section>
      """
  }

  private var bars: [HTML] {
    let scale = max(1, most)
    return (0..<count).flatMap { age in
      let x = Self.width - 10 * (UInt64(age) + 1) + 1
      var top = Self.height
      return zip(series, values(age)).compactMap { series, value -> HTML? in
        guard value > 0 else { return nil }
        // The share of the height, without a product that could exceed the range; at least visible.
        let height = max(2, UInt64(Double(value) / Double(scale) * Double(Self.height - 12)))
        top -= min(top, height)
        return #"<rect class="fill-\#(series.tone.rawValue)" x="\#(x)" y="\#(top)" width="8" height="\#(height)"/>"#
      }
    }
  }
}
