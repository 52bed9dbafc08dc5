/**
 * Random cells and random files of decks, beside a reader that is written another way: no prefix
 * and no price is ever another one than is written.
 */
import { expect, test } from 'vitest'
import type { DeckMapping } from '../../../../control/resources/decks/deck-mapping.ts'
import { readPrefixes } from '../../../../control/resources/decks/deck-prefixes.ts'
import { readPrice } from '../../../../control/resources/decks/deck-prices.ts'
import { openResources } from '../../../support/resources.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const CELLS = 10_000

const tools = (random: () => number) => {
  const below = (count: number): number => Math.floor(random() * count)
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T
  const digits = (length: number): string =>
    Array.from({ length }, () => String(below(10))).join('')
  return { below, pick, digits }
}

// ---- prefixes ----------------------------------------------------------------------------

/** The numbers of ten digits that a cell means, as ranges; undefined: this reader cannot tell. */
function numbersOf(cell: string, rules: DeckMapping): readonly string[] | undefined {
  const ranges: string[] = []
  const list = rules.spaces === 'list' ? /[,;/|\s]/ : /[,;/|\n]/
  const text = cell
    .replace(/^="(.*)"$/s, '$1')
    .replace(/^'(.*)'$/s, '$1')
    .replace(/^'/, '')
    .replaceAll(/\s*[-–]\s*/g, '-')
  for (const token of text.split(list).map((each) => each.replaceAll(/\s/g, ''))) {
    if (token === '') continue
    const [first = '', last = first, ...others] = token.split('-').map(whole)
    if (others.length > 0 || first.length !== last.length) return undefined
    if (!/^[1-9]\d*$/.test(first) || !/^[1-9]\d*$/.test(last)) return undefined
    ranges.push(`${first.padEnd(24, '0')}-${last.padEnd(24, '9')}`)
  }
  return ranges

  function whole(written: string): string {
    const international = /^(?:\+|00)(.*)$/.exec(written)?.[1]
    if (international !== undefined) return international
    if (rules.country_code === undefined) return written
    if (!written.startsWith('0')) return `${rules.country_code}${written}`
    if (rules.trunk_zero === undefined) return 'unknown'
    return `${rules.country_code}${rules.trunk_zero === 'keep' ? written : written.slice(1)}`
  }
}

/** Ranges in order, those that touch as one. */
function joined(ranges: readonly string[]): readonly string[] {
  const ends = ranges
    .map((range) => range.split('-').map(BigInt) as [bigint, bigint])
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
  const whole: [bigint, bigint][] = []
  for (const [from, to] of ends) {
    const last = whole.at(-1)
    if (last !== undefined && from <= last[1] + 1n) last[1] = to > last[1] ? to : last[1]
    else whole.push([from, to])
  }
  return whole.map(([from, to]) => `${from}-${to}`)
}

test('10,000 random cells of prefixes price the numbers that are written, or none', () => {
  const { below, pick, digits } = tools(seededRandom(53))
  const piece = (): string => {
    const start = digits(1 + below(6))
    const kinds = [
      () => start,
      () => `+${start}`,
      () => `00${start}`,
      () => `${start}-${String(Number(start) + below(30)).padStart(start.length, '0')}`,
      () =>
        `${start}${pick(['.0', ',0', 'E+5', '-', "'", 'x', '(0)', '\u0664', '–9', ' ', '  12'])}`,
      () => `0${start}`,
    ]
    return pick(kinds)()
  }
  let read = 0
  for (let at = 0; at < CELLS; at += 1) {
    const parts = Array.from({ length: 1 + below(3) }, piece)
    const inner = parts.join(pick([',', ', ', ';', '/', ' ', ' - ', '|', '\n']))
    const cell = pick([inner, inner, `'${inner}`, `="${inner}"`])
    const rules = {
      exit_code: '00',
      thousands: pick(['', ',']),
      spaces: pick([undefined, 'list', 'join']),
      ...(below(3) === 0 && { country_code: '44', trunk_zero: pick([undefined, 'keep', 'drop']) }),
    } as DeckMapping
    const found = readPrefixes(cell, '', rules)
    if (found.kind !== 'prefixes') continue
    read += 1
    const ranges = found.prefixes.map((each) => `${each.padEnd(24, '0')}-${each.padEnd(24, '9')}`)
    const said = JSON.stringify({ cell, rules, found })
    const written = numbersOf(cell, rules)
    expect({ said, numbers: joined(ranges) }).toEqual({ said, numbers: written && joined(written) })
  }
  expect(read).toBeGreaterThan(CELLS / 10)
})

// ---- prices ------------------------------------------------------------------------------

test('10,000 random cells of prices are the amount that is written, or refused', () => {
  const { below, pick, digits } = tools(seededRandom(17))
  let read = 0
  for (let at = 0; at < CELLS; at += 1) {
    const decimal = pick(['.', ','] as const)
    const thousands = pick(['', ',', '.', ' ', "'"] as const)
    if (thousands === decimal) continue
    const sign = pick([decimal, decimal, decimal, '.', ','])
    const units = pick([digits(below(4)), `${digits(3)}${pick([',', '.', ' ', "'"])}${digits(3)}`])
    const amount = `${units}${pick([`${sign}${digits(below(9))}`, ''])}`
    const cell = pick([amount, amount, `$${amount}`, `${amount} USD`, `-${amount}`, `${amount}e2`])
    const rounding = pick(['refuse', 'up', 'down', 'nearest'] as const)
    const rules = { decimal, thousands, more_decimals: rounding, currency: 'USD' }
    const found = readPrice(cell, rules)
    if (found.kind !== 'price') continue
    read += 1
    const said = JSON.stringify({ cell, rules, found })
    // Twelve decimals as one whole number.
    const bare = cell.replace('$', '').replace(' USD', '')
    const [whole = '', fraction = '', ...more] = bare.split(decimal)
    expect({ said, more }).toEqual({ said, more: [] })
    const trillionths = BigInt(
      `${(thousands === '' ? whole : whole.replaceAll(thousands, '')) || '0'}${fraction.padEnd(12, '0')}`,
    )
    const difference = BigInt(found.micros) * 1_000_000n - trillionths
    const least = { up: 0n, refuse: 0n, down: -999_999n, nearest: -499_999n }[rounding]
    const most = { up: 999_999n, refuse: 0n, down: 0n, nearest: 500_000n }[rounding]
    const isWritten = difference >= least && difference <= most
    const isRounded = trillionths % 1_000_000n !== 0n
    expect({ said, isWritten, isRounded: found.isRounded }).toEqual({
      ...{ said, isWritten: true, isRounded },
    })
  }
  expect(read).toBeGreaterThan(CELLS / 10)
})

// ---- whole files -------------------------------------------------------------------------

const encodings = ['utf8', 'utf16le', 'utf16be', 'latin1'] as const

const encoded = (text: string, encoding: (typeof encodings)[number]): Buffer =>
  encoding === 'utf16be' ? Buffer.from(text, 'utf16le').swap16() : Buffer.from(text, encoding)

test('random files in every form become the rates that were written into them', async () => {
  const { below, pick, digits } = tools(seededRandom(395))
  const control = await openResources()
  for (let file = 0; file < 40; file += 1) {
    const name = `plan ${file}`
    await control.call('POST', '/rate-plans', { name, currency: 'USD' })
    const separator = pick([',', ';', '\t', '|'])
    const encoding = pick(encodings)
    const decimal = separator === ',' ? '.' : pick(['.', ','])
    const rates = new Map<string, string>()
    while (rates.size < 40) rates.set(`${1 + below(9)}${digits(1 + below(7))}`, digits(6))
    const names = [
      '',
      'Österreich',
      'a "quoted" one',
      `with ${separator} in it`,
      'two\nlines',
      "='x",
    ]
    const cellOf = (text: string): string => {
      const mustQuote = /["\n\t,;|]/.test(text) || text !== text.trim()
      return mustQuote || below(4) === 0 ? `"${text.replaceAll('"', '""')}"` : text
    }
    const end = pick(['\n', '\r\n'])
    const lines = [
      ['Name', 'Code', 'Rate'],
      ...[...rates].map(([prefix, micros]) => [
        pick(names),
        pick([prefix, `+${prefix}`, `00${prefix}`, `="${prefix}"`]),
        pick(['0', ''])
          .concat(decimal, micros)
          .concat(pick(['', '0', '00'])),
      ]),
    ].map((cells) => cells.map(cellOf).join(separator) + pick(['', '', end]))
    const mark = encoding.startsWith('utf16') || below(2) === 0 ? '\uFEFF' : ''
    const start = `${encoding === 'latin1' ? '' : mark}${pick(['', `sep=${separator}${end}`])}`
    const mapping = JSON.stringify({
      columns: { prefix: 'code', rate_per_minute: 'Rate', description: 'Name' },
      decimal,
    })
    const words = new URLSearchParams({ rate_plan: name, mapping })
    const deck = encoded(start + lines.join(end), encoding)
    const path = `/rates/decks?${words.toString()}`
    const answer = await control.call('POST', path, deck, {
      headers: { 'content-type': 'application/octet-stream' },
    })
    expect(answer.body).toMatchObject({
      data: { created: rates.size },
    })
    const stored = (
      await control.call('GET', `/rates?rate_plan=${encodeURIComponent(name)}&limit=200`)
    ).data<{ prefix: string; rate_per_minute_exact: string }[]>()
    const micros = stored.map(({ prefix, rate_per_minute_exact: price }) => [
      prefix,
      Math.round(Number(price) * 1_000_000),
    ])
    expect(Object.fromEntries(micros)).toEqual(
      Object.fromEntries([...rates].map(([prefix, price]) => [prefix, Number(price)])),
    )
  }
})
