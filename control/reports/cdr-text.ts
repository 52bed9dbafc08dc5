/**
 * Call records as lines of text. Writes the fields of `viewOf` directly: a report of a day has a
 * million records, and an object for each would cost more than everything else. Bench: `reports`.
 */
import { moneyToDecimal, moneyToNumber, timeToText } from '../../schema/columns.ts'
import { storedDenialText } from '../../schema/contracts/denials.ts'
import { type Zone, zoneOf } from '../../schema/time-zones.ts'
import { carrierCostView } from './carrier-cost-view.ts'
import { at, type CdrValues, recordingAt } from './cdr-store.ts'
import type { CdrView } from './cdr-view.ts'
import { timeInZone } from './report-zones.ts'
import { rateView } from './rate-view.ts'

const quote = (text: string): string => JSON.stringify(text)

/** The characters that JSON must escape; all others are copied. */
const needsEscape = /["\\\p{Cc}\p{Cs}]/u

const quoted = (text: string): string => (needsEscape.test(text) ? quote(text) : `"${text}"`)

const quotedOrNull = (text: string | null): string => (text === null ? 'null' : quoted(text))

const flag = (value: 0 | 1): string => (value === 1 ? 'true' : 'false')

/** Writes the records of one report. */
export class CdrText {
  readonly #slugs: ReadonlyMap<number, string>
  readonly #customers: ReadonlyMap<number, string>
  readonly #words = new Memory(quote)
  readonly #cells = new Memory(csvCell)
  readonly #costs = new Memory((micros: number | null) =>
    micros === null
      ? 'null,"cost_exact":null'
      : `${moneyToNumber(micros)},"cost_exact":"${moneyToDecimal(micros)}"`,
  )
  readonly #sums = new Memory((micros: number | null) =>
    micros === null ? ',' : `${moneyToNumber(micros)},${moneyToDecimal(micros)}`,
  )
  /** Cost and margin of calls by a carrier: JSON, and cells. */
  readonly #bought = new Memory((key: string) => boughtTexts(key))
  /** The price by which calls were rated: JSON, and cells. */
  readonly #rates = new Memory((key: string) => rateTexts(key))
  readonly #times: { readonly of: (ms: number) => string }

  /**
   * @param slugs of tenants by id.
   * @param customers names of the customers of the records that will be written, by id.
   * @param zone IANA name: times are those of its clock; absent: UTC.
   */
  constructor(
    slugs: ReadonlyMap<number, string>,
    customers: ReadonlyMap<number, string>,
    zone?: string,
  ) {
    this.#slugs = slugs
    this.#customers = customers
    this.#times = zone === undefined ? new SecondTexts(timeToText) : timesIn(zoneOf(zone))
  }

  /** The JSON of `viewOf`. */
  json(row: CdrValues): string {
    const slug = this.#slugOf(row)
    return (
      `{"call_uuid":${quoted(row[at.call_uuid])}` +
      `,"caller_id_number":${quoted(row[at.caller_id_number])}` +
      `,"destination_number":${quoted(row[at.destination_number])}` +
      `,"start_stamp":"${this.#times.of(row[at.start_stamp])}","billsec":${row[at.billsec]}` +
      `,"disposition":"${row[at.disposition]}","mos_score":${row[at.mos_score]}` +
      `,"cost":${this.#costs.of(row[at.cost_micros])},"currency":${this.#word(row[at.currency])}` +
      `,"answer_stamp":${this.#moment(row[at.answer_stamp])}` +
      `,"end_stamp":"${this.#times.of(row[at.end_stamp])}","duration":${row[at.duration]}` +
      `,"post_dial_delay_ms":${row[at.post_dial_delay_ms]},"sip_code":${row[at.sip_code]}` +
      `,"hangup_cause":${this.#word(row[at.hangup_cause])},"hangup_by":"${row[at.hangup_by]}"` +
      `,"denial_code":${this.#word(row[at.denial_code])},"direction":"${row[at.direction]}"` +
      `,"set_id":${row[at.set_id]},"node":${this.#word(row[at.node])}` +
      `,"instance":${this.#word(row[at.instance])}` +
      `,"carrier":${this.#word(row[at.carrier])},"attempts":${this.#attempts(row[at.attempts])}` +
      `,"jitter_ms":${row[at.jitter_ms]},"packet_loss_pct":${row[at.packet_loss_pct]}` +
      `,"customer_id":${row[at.customer_id]},"tenant_slug":${this.#word(slug)}` +
      `,"call_id":${quoted(row[at.call_id])},"recovered":${flag(row[at.is_recovered])}` +
      `,"unauthorized_by_ocs":${flag(row[at.is_unauthorized_by_ocs])}` +
      `,"mos_source":${this.#word(row[at.mos_source])},"media_quality":${row[at.media_quality]}` +
      `,"recording":${row[recordingAt]},"recording_error":${this.#word(row[at.recording_error])}` +
      `,"denial_text":${this.#denialText(row)},"tags":${row[at.tags]}` +
      `,"verification":${this.#word(row[at.verification])}` +
      `,"verstat":${this.#word(row[at.verstat])}` +
      `,"attestation":${this.#word(row[at.attestation])}` +
      this.#boughtOf(row).json +
      `,"customer_name":${this.#word(this.#customerOf(row))}${this.#ratedBy(row).json}` +
      `,"number_dialled":${quotedOrNull(row[at.number_dialled])}` +
      `${sentOfLast(row[at.attempts]).json}}`
    )
  }

  /** One line with its end. Only texts from outside may need escaping in CSV. */
  csv(row: CdrValues): string {
    const answeredAt = row[at.answer_stamp]
    return (
      `${csvCell(row[at.call_uuid])},${csvCell(row[at.caller_id_number])}` +
      `,${csvCell(row[at.destination_number])},${this.#times.of(row[at.start_stamp])}` +
      `,${answeredAt === null ? '' : this.#times.of(answeredAt)}` +
      `,${this.#times.of(row[at.end_stamp])},${row[at.billsec]},${row[at.duration]}` +
      `,${row[at.disposition]},${this.#sums.of(row[at.cost_micros])}` +
      `,${row[at.currency] ?? ''},${row[at.sip_code]},${this.#cell(row[at.hangup_cause])}` +
      `,${row[at.hangup_by]},${row[at.denial_code] ?? ''},${row[at.direction]}` +
      `,${row[at.set_id] ?? ''},${this.#cell(row[at.node])},${this.#cell(row[at.carrier])}` +
      `,${row[at.customer_id] ?? ''},${this.#slugOf(row) ?? ''},${row[at.mos_score] ?? ''}` +
      `,${row[at.jitter_ms] ?? ''},${row[at.packet_loss_pct] ?? ''}` +
      `,${csvCell(row[at.call_id])},${row[at.post_dial_delay_ms] ?? ''}` +
      `,${flag(row[at.is_recovered])},${flag(row[at.is_unauthorized_by_ocs])}` +
      `,${csvCell(storedDenialText(row[at.denial_code], row[at.denial_text]) ?? '')}` +
      `,${this.#cell(row[at.instance])},${row[at.mos_source] ?? ''}` +
      `,${csvCell(row[at.media_quality] ?? '')},${csvCell(row[recordingAt] ?? '')}` +
      `,${row[at.recording_error] ?? ''}` +
      `,${csvCell(row[at.tags] ?? '')}` +
      `,${row[at.verification] ?? ''},${row[at.verstat] ?? ''},${row[at.attestation] ?? ''}` +
      this.#boughtOf(row).csv +
      `,${csvCell(this.#attempts(row[at.attempts]))}` +
      `,${this.#cell(this.#customerOf(row))}${this.#ratedBy(row).csv}` +
      `,${csvCell(row[at.number_dialled] ?? '')}${sentOfLast(row[at.attempts]).csv}\r\n`
    )
  }

  #boughtOf(row: CdrValues): FieldTexts {
    const bought = row[at.carrier_cost_micros]
    if (bought === null) return notBought
    return this.#bought.of(
      JSON.stringify([
        row[at.cost_micros],
        row[at.currency],
        bought,
        row[at.carrier_currency],
        row[at.carrier_prefix],
      ]),
    )
  }

  #ratedBy(row: CdrValues): FieldTexts {
    return this.#rates.of(`${row[at.rate_prefix] ?? ''} ${row[at.rated] ?? ''}`)
  }

  #customerOf(row: CdrValues): string | null {
    const id = row[at.customer_id]
    return id === null ? null : (this.#customers.get(id) ?? null)
  }

  #slugOf(row: CdrValues): string | null {
    const tenantId = row[at.tenant_id]
    return tenantId === null ? null : (this.#slugs.get(tenantId) ?? null)
  }

  #denialText(row: CdrValues): string {
    const text = storedDenialText(row[at.denial_code], row[at.denial_text])
    return text === null ? 'null' : quoted(text)
  }

  /** Writes a value that repeats in many records. */
  #word(text: string | null): string {
    return text === null ? 'null' : this.#words.of(text)
  }

  #cell(text: string | null): string {
    return text === null ? '' : this.#cells.of(text)
  }

  #moment(time: number | null): string {
    return time === null ? 'null' : `"${this.#times.of(time)}"`
  }

  /**
   * `insertCallRecord` wrote the attempts, each ending in `,"startedAt":<ms>,"endedAt":<ms>}`.
   * Inside a text these quotes would be escaped, so the ends are found without parsing.
   */
  #attempts(json: string): string {
    let text = ''
    let done = 0
    for (;;) {
      const start = json.indexOf(STARTED, done)
      if (start === -1) return text + json.slice(done)
      const end = json.indexOf(ENDED, start)
      const close = json.indexOf('}', end)
      const startedAt = Number(json.slice(start + STARTED.length, end))
      const endedAt = Number(json.slice(end + ENDED.length, close))
      text += `${json.slice(done, start)},"start_stamp":"${this.#times.of(startedAt)}"`
      text += `,"end_stamp":"${this.#times.of(endedAt)}"`
      done = close
    }
  }
}

const SENT = '"sent":{'
/** Two texts of JSON. Inside of a text, quotes are escaped. */
const sentNumbers = /"called":("(?:[^"\\]|\\.)*"),"caller":("(?:[^"\\]|\\.)*")/y

/** Both numbers as they went to the destination that was tried last. */
function sentOfLast(attempts: string): FieldTexts {
  const start = attempts.lastIndexOf(SENT)
  if (start === -1) return notSent
  sentNumbers.lastIndex = start + SENT.length
  const [, called, caller] = sentNumbers.exec(attempts) ?? []
  if (called === undefined || caller === undefined) return notSent
  return {
    json: `,"number_sent":${called},"caller_sent":${caller}`,
    csv: `,${csvCell(textOf(called))},${csvCell(textOf(caller))}`,
  }
}

const notSent: FieldTexts = { json: ',"number_sent":null,"caller_sent":null', csv: ',,' }

const textOf = (json: string): string =>
  json.includes('\\') ? (JSON.parse(json) as string) : json.slice(1, -1)

interface FieldTexts {
  readonly json: string
  readonly csv: string
}

/** @param key the JSON of cost, currency, carrier's cost, its currency and its prefix. */
function boughtTexts(key: string): FieldTexts {
  const [cost, currency, bought, boughtIn, prefix] = JSON.parse(key) as BoughtKey
  const view = carrierCostView({
    cost_micros: cost,
    currency,
    carrier_cost_micros: bought,
    carrier_currency: boughtIn,
    carrier_prefix: prefix,
  })
  return textsOf(view)
}

const textsOf = (view: Readonly<Record<string, string | number | null>>): FieldTexts => ({
  json: `,${JSON.stringify(view).slice(1, -1)}`,
  csv: Object.values(view)
    .map((value) => `,${value ?? ''}`)
    .join(''),
})

/** @param key the prefix, a space, and the stored price; nothing for what is not known. */
function rateTexts(key: string): FieldTexts {
  const space = key.lastIndexOf(' ')
  const [prefix, rated] = [key.slice(0, space), key.slice(space + 1)]
  const known = { rate_prefix: prefix === '' ? null : prefix, rated: rated === '' ? null : rated }
  return textsOf(rateView(known))
}

type BoughtKey = readonly [
  cost: number | null,
  currency: string | null,
  bought: number | null,
  boughtIn: string | null,
  prefix: string | null,
]

const notBought = boughtTexts('[null,null,null,null,null]')

const STARTED = ',"startedAt":'
const ENDED = ',"endedAt":'

/** Attempts, qualities and tags are JSON in their cells. */
const columns = [
  'call_uuid',
  'caller_id_number',
  'destination_number',
  'start_stamp',
  'answer_stamp',
  'end_stamp',
  'billsec',
  'duration',
  'disposition',
  'cost',
  'cost_exact',
  'currency',
  'sip_code',
  'hangup_cause',
  'hangup_by',
  'denial_code',
  'direction',
  'set_id',
  'node',
  'carrier',
  'customer_id',
  'tenant_slug',
  'mos_score',
  'jitter_ms',
  'packet_loss_pct',
  'call_id',
  'post_dial_delay_ms',
  'recovered',
  'unauthorized_by_ocs',
  'denial_text',
  'instance',
  'mos_source',
  'media_quality',
  'recording',
  'recording_error',
  'tags',
  'verification',
  'verstat',
  'attestation',
  'carrier_cost',
  'carrier_cost_exact',
  'carrier_currency',
  'carrier_prefix',
  'margin',
  'margin_exact',
  'attempts',
  'customer_name',
  'rate_prefix',
  'rate',
  'rate_first',
  'connect_fee',
  'first_increment',
  'increment',
  'number_dialled',
  'number_sent',
  'caller_sent',
] as const satisfies readonly (keyof CdrView)[]

export const csvHeader = `${columns.join(',')}\r\n`

/**
 * RFC 4180. Text that a spreadsheet would run as a formula is prefixed, because callers choose
 * names. Some spreadsheets take a semicolon as the end of a cell, and full-width characters as
 * ASCII.
 */
export function csvCell(value: string): string {
  if (plain.test(value)) return value
  const text = hasFormula.test(value) ? value.replace(formulas, "$1'") : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Almost all texts are plain. */
const plain = /^(?:\+?\d*|\w[\w.:@= -]*)$/

const hasFormula = /(?:^|[;\t\r\n])[^\S\t\r\n]*[=@+\-\uff1d\uff20\uff0b\uff0d]|^[\t\r]/
/** A signed number is not a formula. */
const formulas =
  /(^|[;\t\r\n])(?=[^\S\t\r\n]*(?:[=@\uff1d\uff20]|[+\-\uff0b\uff0d](?!\d*$))|[\t\r])/g

/** Maximum entries; beyond that, the cache is cleared. */
const MAX_REMEMBERED = 10_000

/** Caches texts that repeat. */
class Memory<Key, Value> {
  readonly #make: (key: Key) => Value
  readonly #made = new Map<Key, Value>()

  constructor(make: (key: Key) => Value) {
    this.#make = make
  }

  of(key: Key): Value {
    const known = this.#made.get(key)
    if (known !== undefined) return known
    const made = this.#make(key)
    if (this.#made.size === MAX_REMEMBERED) this.#made.clear()
    this.#made.set(key, made)
    return made
  }
}

const timesIn = (zone: Zone) => ({ of: (ms: number) => timeInZone(ms, zone) })

/** Power of two. Records are ordered, so repeated lookups lie within some hours. */
const SECONDS = 16_384

/** Times as text; those of one second differ only in their end. */
class SecondTexts {
  readonly #toText: (ms: number) => string
  readonly #seconds = new Float64Array(SECONDS).fill(-1)
  readonly #texts: string[] = Array.from({ length: SECONDS }, () => '')

  /** `toText` writes milliseconds UTC in RFC 3339 with three decimals and `Z`. */
  constructor(toText: (ms: number) => string) {
    this.#toText = toText
  }

  of(ms: number): string {
    const second = Math.floor(ms / 1_000)
    const slot = second & (SECONDS - 1)
    if (this.#seconds[slot] !== second) {
      this.#seconds[slot] = second
      this.#texts[slot] = this.#toText(second * 1_000).slice(0, -4)
    }
    return `${this.#texts[slot] ?? ''}${milliseconds[ms - second * 1_000] ?? ''}`
  }
}

const milliseconds = Array.from({ length: 1_000 }, (_, ms) => `${String(ms).padStart(3, '0')}Z`)
