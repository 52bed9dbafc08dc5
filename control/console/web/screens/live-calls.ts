/** The live calls of the page: a list of the server, updated by its events. */
import type { ShownCall, CallPrice } from '../api/views.ts'

/** An event of the stream. */
interface LiveEvent {
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

/** A call at one moment. Its cost is computed where it is looked at: few calls are in sight. */
export class CallNow {
  readonly call: ShownCall
  readonly #elapsed: number

  constructor({ call, since }: KnownCall, present: number) {
    this.call = call
    this.#elapsed = Math.max(0, present - since)
  }

  get seconds(): number {
    return Math.floor(this.#elapsed / 1_000)
  }

  /** Null: not known, or there is none. */
  get cost(): string | null {
    return costAt(this.call, this.#elapsed)
  }
}

interface KnownCall {
  readonly call: ShownCall
  /** Start of the talk, or of a call that is not answered yet, by the clock of this page. */
  readonly since: number
  readonly updatedAt: number
}

/** How long a call that has ended may come back in a list that was made before. */
const ENDED_MS = 30_000

export class LiveCalls {
  readonly #calls = new Map<string, KnownCall>()
  readonly #ended = new Map<string, number>()

  /** Takes over a list that was requested at `askedAt`: events since then are newer. */
  list(listed: readonly ShownCall[], askedAt: number, present: number): void {
    for (const [uuid, endedAt] of this.#ended)
      if (endedAt < present - ENDED_MS) this.#ended.delete(uuid)
    const before = new Map(this.#calls)
    this.#calls.clear()
    for (const call of listed)
      if (!this.#ended.has(call.call_uuid)) this.#take(call, before.get(call.call_uuid), present)
    for (const [uuid, known] of before)
      if (known.updatedAt >= askedAt && !this.#calls.has(uuid)) this.#calls.set(uuid, known)
  }

  /** The list has whole seconds only: the earlier start of the same talk is the better one. */
  #take(call: ShownCall, known: KnownCall | undefined, present: number): void {
    const since = present - call.duration_seconds * 1_000
    const isSame = known?.call.answer_stamp === call.answer_stamp
    this.#calls.set(call.call_uuid, {
      call,
      updatedAt: known?.updatedAt ?? 0,
      since: isSame ? Math.min(since, known?.since ?? since) : since,
    })
  }

  /** Returns whether it changes what is shown. */
  hear({ type, data }: LiveEvent, present: number): boolean {
    const uuid = textOf(data['call_uuid'])
    if (uuid === undefined) return false
    if (type === 'call.ended') {
      this.#ended.set(uuid, present)
      return this.#calls.delete(uuid)
    }
    const start = textOf(data['start_stamp'])
    if (!type.startsWith('call.') || start === undefined || this.#ended.has(uuid)) return false
    const answer = textOf(data['answer_stamp']) ?? null
    const talked = Date.parse(textOf(data['at']) ?? start) - Date.parse(answer ?? start)
    const known = this.#calls.get(uuid)
    const call: ShownCall = { ...(known?.call ?? blank), ...fieldsOf(uuid, data) }
    const isSame = known !== undefined && known.call.answer_stamp === answer
    const since = isSame ? known.since : present - talked
    this.#calls.set(uuid, { call, since, updatedAt: present })
    return true
  }

  at(present: number): readonly CallNow[] {
    return [...this.#calls.values()].map((known) => new CallNow(known, present))
  }
}

/** An answered call costs from its first second on. */
function costAt({ price, cost_exact: stored, answer_stamp: answer }: ShownCall, elapsed: number) {
  if (price === null) return stored
  const seconds = answer === null ? 0 : Math.max(1, Math.ceil(elapsed / 1_000))
  return decimalText(costMicros(price, seconds))
}

/** The fields that events lack. */
const blank: ShownCall = {
  uuid: '',
  call_uuid: '',
  caller_id_number: '',
  destination_number: '',
  duration_seconds: 0,
  state: 'DIALING',
  direction: 'outbound',
  start_stamp: '',
  answer_stamp: null,
  set_id: null,
  node: null,
  node_state: null,
  carrier: null,
  instance: '',
  caller_address: null,
  callee_address: null,
  customer_id: null,
  tags: null,
  transfer: null,
  recording: false,
  cost: null,
  cost_exact: null,
  currency: null,
  price: null,
}

/** Fields of an event about a live call: they have the form of those in the list. */
function fieldsOf(uuid: string, data: LiveEvent['data']): Partial<ShownCall> {
  const update = data as Partial<ShownCall>
  const names = [
    'caller_id_number',
    'destination_number',
    'direction',
    'state',
    'start_stamp',
    'answer_stamp',
    'node',
    'instance',
    'carrier',
    'customer_id',
    'tags',
    'transfer',
    'price',
  ] as const
  const fields = names.flatMap((name) => (name in update ? [[name, update[name]]] : []))
  const currency = update.price?.currency
  return {
    uuid,
    call_uuid: uuid,
    ...(Object.fromEntries(fields) as Partial<ShownCall>),
    ...(currency !== undefined && { currency }),
  }
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined

/**
 * Connect fee, first increment, each further increment begun: an exact sum, rounded once as the
 * plan rounds.
 */
export function costMicros(price: CallPrice, seconds: number): bigint {
  if (seconds <= 0) return 0n
  const [first, step] = [BigInt(price.first_increment), BigInt(price.increment)]
  const beyond = BigInt(seconds) - first
  const further = beyond > 0n ? ((beyond + step - 1n) / step) * step : 0n
  const sixtieths =
    60n * micros(price.connect_fee) +
    first * micros(price.first_rate_per_minute) +
    further * micros(price.rate_per_minute)
  const quantum = 10n ** BigInt(6 - price.decimals)
  const divisor = 60n * quantum
  return ((sixtieths + addedBy(price.rounding, divisor)) / divisor) * quantum
}

function addedBy(rounding: CallPrice['rounding'], divisor: bigint): bigint {
  if (rounding === 'down') return 0n
  return rounding === 'half_up' ? divisor / 2n : divisor - 1n
}

/** `0.6` → 600000n */
function micros(decimal: string): bigint {
  const [units = '0', fraction = ''] = decimal.split('.')
  return BigInt(units) * 1_000_000n + BigInt(fraction.padEnd(6, '0').slice(0, 6))
}

/** Writes an amount as the API does: with two to six decimals. */
export function decimalText(amount: bigint): string {
  const digits = amount.toString().padStart(7, '0')
  const fraction = digits.slice(-6)
  const shown = fraction.slice(0, 2) + fraction.slice(2).replace(/0+$/, '')
  return `${digits.slice(0, -6)}.${shown}`
}
