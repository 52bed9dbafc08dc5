/**
 * Adds up records by every dimension that has kept sums. Hot: a record is counted seven times, once for its caller, its
 * minute and each of five dimensions of its customer. The other sums are made of these when all are in.
 */
import { ALL, type Dimension, MINUTE_MS, NONE, startOfDay } from './dimensions.ts'
import { type Counted, Ledger, Sums } from './sum.ts'

/** The groups of one kind that are bounded together: those of a day, a dimension, a customer and a tenant. */
export interface Scope {
  readonly day: number
  readonly dimension: Dimension
  readonly customerId: number
  readonly tenantId: number
  readonly groups: Sums
}

/** Of all customers together they are kept, too. */
const dimensions = ['callee_prefix', 'node', 'carrier', 'denial_code'] as const

class CustomerDay {
  readonly callee_prefix: Sums
  readonly node: Sums
  readonly carrier: Sums
  readonly denial_code: Sums
  readonly rate_prefix: Sums

  constructor(ledger: Ledger) {
    this.callee_prefix = new Sums(ledger)
    this.node = new Sums(ledger)
    this.carrier = new Sums(ledger)
    this.denial_code = new Sums(ledger)
    this.rate_prefix = new Sums(ledger)
  }
}

class TenantDay {
  readonly caller: Sums
  readonly minute: Sums
  readonly customers = new Map<number, CustomerDay>()

  constructor(ledger: Ledger) {
    this.caller = new Sums(ledger)
    this.minute = new Sums(ledger)
  }
}

type Day = Map<number, TenantDay>

export class Tally {
  readonly #ledger = new Ledger()
  readonly #days = new Map<number, Day>()
  /** The last record's: most of the next ones have the same. */
  #day: Day = new Map()
  #dayStart = NaN
  #minuteStart = NaN
  #minute = 0

  add(counted: Counted): void {
    const { customerId } = counted
    const own = this.#tenantDay(counted)
    const ledger = this.#ledger
    const of = ledger.nameOf(counted.currency)
    own.caller.count(of + ledger.numberOf(counted.caller), counted)
    own.minute.count(of + this.#minute, counted)
    let customer = own.customers.get(customerId)
    if (customer === undefined) own.customers.set(customerId, (customer = new CustomerDay(ledger)))
    customer.callee_prefix.count(of + ledger.numberOf(counted.calleePrefix), counted)
    customer.node.count(of + ledger.numberOf(counted.node), counted)
    customer.carrier.count(of + ledger.numberOf(counted.carrier), counted)
    customer.denial_code.count(of + ledger.numberOf(counted.denialCode), counted)
    // Calls without a customer are charged to none.
    if (customerId !== NONE)
      customer.rate_prefix.count(of + ledger.numberOf(counted.ratePrefix), counted)
  }

  *scopes(): Generator<Scope, void, undefined> {
    for (const [day, tenants] of this.#days) {
      const minutes = new Sums(this.#ledger)
      for (const [tenantId, own] of tenants) {
        minutes.merge(own.minute)
        yield* scopesOf(day, tenantId, own, this.#ledger)
      }
      yield { day, dimension: 'minute', customerId: ALL, tenantId: ALL, groups: minutes }
    }
  }

  #tenantDay({ startedAt, tenantId }: Counted): TenantDay {
    const minute = startedAt - (startedAt % MINUTE_MS)
    if (minute !== this.#minuteStart) this.#enter(minute)
    let own = this.#day.get(tenantId)
    if (own === undefined) this.#day.set(tenantId, (own = new TenantDay(this.#ledger)))
    return own
  }

  #enter(minute: number): void {
    this.#minuteStart = minute
    this.#minute = this.#ledger.numberOf(String(minute))
    const start = startOfDay(minute)
    if (start === this.#dayStart) return
    this.#dayStart = start
    let day = this.#days.get(start)
    if (day === undefined) this.#days.set(start, (day = new Map()))
    this.#day = day
  }
}

function* scopesOf(
  day: number,
  tenantId: number,
  own: TenantDay,
  ledger: Ledger,
): Generator<Scope, void, undefined> {
  const of = { day, customerId: ALL, tenantId }
  yield { ...of, dimension: 'caller', groups: own.caller }
  yield { ...of, dimension: 'tenant_minute', groups: own.minute }
  const customers = new Sums(ledger)
  const all = new CustomerDay(ledger)
  for (const [customerId, customer] of own.customers) {
    customers.merge(customer.denial_code, customerId === NONE ? '' : String(customerId))
    for (const dimension of dimensions) {
      all[dimension].merge(customer[dimension])
      yield { ...of, customerId, dimension, groups: customer[dimension] }
    }
    if (customerId !== NONE)
      yield { ...of, customerId, dimension: 'rate_prefix', groups: customer.rate_prefix }
  }
  yield { ...of, dimension: 'customer', groups: customers }
  for (const dimension of dimensions) yield { ...of, dimension, groups: all[dimension] }
}
