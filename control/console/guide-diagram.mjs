/**
 * Draws the pictures of GUIDE.md, which GitHub draws by itself: flowcharts and sequence diagrams of
 * mermaid, as far as the guide uses them. Anything else stops the build.
 */
const LINE = 18
const PADDING = 10
const MARGIN = 12
const CHARACTER = 7.2

const escaped = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

const widthOf = (text) => Math.ceil(text.length * CHARACTER)
const widest = (texts) => Math.max(0, ...texts.map(widthOf))

export function diagram(source) {
  const [kind, ...lines] = source
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  if (kind === 'sequenceDiagram') return sequence(lines)
  const [, direction] = /^flowchart (LR|TB)$/.exec(kind) ?? []
  if (direction === undefined) throw new Error(`GUIDE.md: no picture for ${kind}`)
  return flowchart(lines, direction)
}

function picture(width, height, label, parts) {
  const [whole, tall] = [width + 2 * MARGIN, height + 2 * MARGIN]
  return `<div class="wide" tabindex="0"><svg role="img" aria-label="${escaped(label)}" width="${whole}" height="${tall}" viewBox="-${MARGIN} -${MARGIN} ${whole} ${tall}" fill="none" stroke="currentColor">
${parts.join('\n')}
</svg></div>\n`
}

const text = (x, y, content, anchor = 'middle') =>
  `<text x="${x}" y="${y}" text-anchor="${anchor}" font-size="13" fill="currentColor" stroke="none">${escaped(content)}</text>`
const box = ({ x, y, width, height }) =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6" />`
const path = (points, isDashed = false) =>
  `<path d="${points}"${isDashed ? ' stroke-dasharray="5 4"' : ''} />`

/** A head of an arrow that comes to (x, y) from (fromX, fromY). */
function head(fromX, fromY, x, y) {
  const angle = Math.atan2(y - fromY, x - fromX)
  const corner = (turn) =>
    `${(x - 9 * Math.cos(angle + turn)).toFixed(1)} ${(y - 9 * Math.sin(angle + turn)).toFixed(1)}`
  return `<path d="M${x} ${y} L${corner(0.4)} L${corner(-0.4)} Z" fill="currentColor" />`
}

// Sequence diagrams.

function sequence(lines) {
  const names = new Map()
  const steps = []
  for (const line of lines) {
    const participant = /^participant (\w+) as (.+)$/.exec(line)
    const message = /^(\w+)->>(\w+): (.+)$/.exec(line)
    const note = /^Note over ([\w,]+): (.+)$/.exec(line)
    if (participant) names.set(participant[1], participant[2])
    else if (message) steps.push({ from: message[1], to: message[2], content: message[3] })
    else if (note) {
      const [from, to = from] = note[1].split(',')
      steps.push({ from, to, content: note[2], isNote: true })
    } else throw new Error(`GUIDE.md: no picture for ${line}`)
  }
  const order = [...names.keys()]
  const between = order.map((_, at) =>
    widest(
      steps.flatMap(({ from, to, content }) => {
        const ends = [order.indexOf(from), order.indexOf(to)].toSorted((a, b) => a - b)
        return ends[0] === at && ends[1] <= at + 1 ? [content] : []
      }),
    ),
  )
  const nameWidth = widest([...names.values()]) + 2 * PADDING
  const centers = []
  for (const [at] of order.entries())
    centers.push(
      at === 0
        ? nameWidth / 2 + 1
        : centers[at - 1] + Math.max(nameWidth + 20, between[at - 1] + 30),
    )
  const last = order.length - 1
  const width = Math.ceil(centers[last] + Math.max(nameWidth / 2, between[last] + 20) + 1)
  const top = LINE + 2 * PADDING
  const height = top + steps.length * 2 * LINE + LINE
  const centerOf = (name) => centers[order.indexOf(name)]
  const parts = order.flatMap((name) => {
    const x = centerOf(name)
    return [
      box({ x: x - nameWidth / 2, y: 1, width: nameWidth, height: LINE + PADDING }),
      text(x, LINE + 2, names.get(name)),
      path(`M${x} ${LINE + PADDING + 1} V${height}`, true),
    ]
  })
  steps.forEach(({ from, to, content, isNote = false }, at) => {
    const y = top + (at + 1) * 2 * LINE - PADDING
    const [start, end] = [centerOf(from), centerOf(to)]
    if (start === end) parts.push(text(start + PADDING, y, content, 'start'))
    else if (isNote) parts.push(text((start + end) / 2, y, content))
    else
      parts.push(
        text((start + end) / 2, y - 5, content),
        path(`M${start} ${y} H${end}`),
        head(start, y, end, y),
      )
  })
  const told = steps.map(({ from, to, content }) =>
    from === to
      ? `${names.get(from)}: ${content}`
      : `${names.get(from)} to ${names.get(to)}: ${content}`,
  )
  return picture(width, height, told.join('; '), parts)
}

// Flowcharts: the nodes in ranks, each behind those that lead to it.

function flowchart(lines, direction) {
  const nodes = new Map()
  const edges = lines.map((line) => {
    const found =
      /^(\w+)(\S["(].*?["][\])}]+|\["[^"]*"\])? (<?-\.?->)(?:\|([^|]+)\|)? (\w+)(.*)$/.exec(line)
    if (found === null) throw new Error(`GUIDE.md: no picture for ${line}`)
    const [, from, fromLabel, arrow, content = '', to, toLabel] = found
    for (const [name, label = ''] of [
      [from, fromLabel],
      [to, toLabel],
    ]) {
      const [, given] = /"([^"]*)"/.exec(label) ?? []
      const known = nodes.get(name)
      nodes.set(name, { label: given ?? known?.label ?? name, rank: known?.rank ?? 0 })
    }
    return { from, to, content, isDashed: arrow.includes('.'), isMutual: arrow.startsWith('<') }
  })
  rank(nodes, edges)
  place(nodes, edges, direction)
  const all = [...nodes.values()]
  const width = Math.max(...all.map((node) => node.x + node.width)) + 2
  const height = Math.max(...all.map((node) => node.y + node.height)) + LINE + 2
  const parts = all.flatMap((node) => [
    box(node),
    text(node.x + node.width / 2, node.y + node.height / 2 + 4, node.label),
  ])
  for (const edge of edges) parts.push(...arrow(edge, nodes, direction))
  const told = edges.map(
    ({ from, to, content }) =>
      `${nodes.get(from).label} to ${nodes.get(to).label}${content === '' ? '' : `: ${content}`}`,
  )
  return picture(Math.ceil(width), Math.ceil(height), told.join('; '), parts)
}

/** Puts each node behind those that lead to it. */
function rank(nodes, edges) {
  for (let turn = 0; turn < nodes.size; turn += 1)
    for (const { from, to } of edges) {
      const node = nodes.get(to)
      node.rank = Math.max(node.rank, nodes.get(from).rank + 1)
    }
}

function place(nodes, edges, direction) {
  const height = LINE + 2 * PADDING
  const ranks = []
  for (const node of nodes.values()) {
    node.width = widthOf(node.label) + 2 * PADDING
    node.height = height
    ;(ranks[node.rank] ??= []).push(node)
  }
  const gapAfter = (at) => {
    const labels = edges.filter(({ from }) => nodes.get(from).rank === at)
    return Math.max(50, widest(labels.map(({ content }) => content)) + 40)
  }
  const rowStep = height + 36
  const most = Math.max(...ranks.map((each) => each.length))
  let along = 1
  ranks.forEach((each, at) => {
    const thickness = Math.max(...each.map(({ width }) => width))
    const start = ((most - each.length) * rowStep) / 2 + 1
    let across = 1
    each.forEach((node, row) => {
      if (direction === 'LR') Object.assign(node, { x: along, y: start + row * rowStep })
      else {
        Object.assign(node, { x: across, y: along })
        across += node.width + 40
      }
    })
    along += direction === 'LR' ? thickness + gapAfter(at) : height + 3 * LINE
  })
}

function arrow({ from, to, content, isDashed, isMutual }, nodes, direction) {
  const [one, other] = [nodes.get(from), nodes.get(to)]
  const [startX, startY, endX, endY] =
    direction === 'LR'
      ? [one.x + one.width, one.y + one.height / 2, other.x, other.y + other.height / 2]
      : [one.x + one.width / 2, one.y + one.height, other.x + other.width / 2, other.y]
  return [
    path(`M${startX} ${startY} L${endX} ${endY}`, isDashed),
    head(startX, startY, endX, endY),
    ...(isMutual ? [head(endX, endY, startX, startY)] : []),
    ...(content === '' ? [] : [text((startX + endX) / 2, (startY + endY) / 2 - 5, content)]),
  ]
}
