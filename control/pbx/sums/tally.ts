/** Adds up a slice of records by every dimension that has kept sums. */
import { add, dearestOf, type Figures, noFigures } from './figures.ts'
import {
  ALL,
  type Dimension,
  type MemberDimension,
  MINUTE_MS,
  NONE,
  paired,
  startOfDay,
} from './dimensions.ts'

/** A record, or a change of its cost, which counts no call. */
export interface Counted {
  readonly isCall: boolean
  readonly id: number
  readonly startedAt: number
  readonly tenantId: number | null
  readonly customerId: number | null
  readonly members: Readonly<Record<MemberDimension, string>>
  readonly isAnswered: boolean
  readonly isDenied: boolean
  readonly isFailed: boolean
  readonly billsec: number
  readonly pddMs: number | null
  readonly costMicros: number
  readonly currency: string
  /** Of the record, whatever changed it. */
  readonly wholeCostMicros: number
}

/** The groups of one kind that are bounded together: those of a day, a dimension, a customer and a tenant. */
export interface Scope {
  readonly day: number
  readonly dimension: Dimension
  readonly customerId: number
  readonly tenantId: number
  /** By member and currency. */
  readonly groups: Map<string, Group>
}

export interface Group {
  readonly member: string
  readonly currency: string
  readonly figures: Figures
}

const memberDimensions = ['caller', 'callee_prefix', 'node', 'carrier', 'denial_code'] as const

export class Tally {
  readonly #scopes = new Map<string, Scope>()

  add(counted: Counted): void {
    const { members, customerId, startedAt } = counted
    const figures = figuresOf(counted)
    const tenant = counted.tenantId ?? NONE
    const customer = customerId ?? NONE
    const day = startOfDay(startedAt)
    const into = (dimension: Dimension, ofCustomer: number, ofTenant: number, member: string) =>
      this.#add(day, dimension, ofCustomer, ofTenant, member, counted.currency, figures)
    const minute = String(startedAt - (startedAt % MINUTE_MS))
    into('customer', ALL, tenant, customerId === null ? '' : String(customerId))
    into('minute', ALL, ALL, minute)
    into('tenant_minute', ALL, tenant, minute)
    for (const dimension of memberDimensions) {
      into(dimension, ALL, tenant, members[dimension])
      if (paired.has(dimension)) into(dimension, customer, tenant, members[dimension])
    }
  }

  scopes(): Iterable<Scope> {
    return this.#scopes.values()
  }

  #add(
    day: number,
    dimension: Dimension,
    customerId: number,
    tenantId: number,
    member: string,
    currency: string,
    figures: Figures,
  ): void {
    const name = `${day} ${dimension} ${customerId} ${tenantId}`
    let scope = this.#scopes.get(name)
    if (scope === undefined) {
      scope = { day, dimension, customerId, tenantId, groups: new Map() }
      this.#scopes.set(name, scope)
    }
    addTo(scope.groups, member, currency, figures)
  }
}

export function addTo(
  groups: Map<string, Group>,
  member: string,
  currency: string,
  figures: Readonly<Figures>,
): void {
  const key = `${currency} ${member}`
  let group = groups.get(key)
  if (group === undefined) {
    group = { member, currency, figures: noFigures() }
    groups.set(key, group)
  }
  add(group.figures, figures)
}

function figuresOf(counted: Counted): Figures {
  const { isCall, isAnswered, isDenied, isFailed, id, startedAt, pddMs } = counted
  return {
    calls: Number(isCall),
    answered: Number(isCall && isAnswered),
    denied: Number(isCall && isDenied),
    failed: Number(isCall && isFailed),
    billsec: isCall ? counted.billsec : 0,
    cost: BigInt(counted.costMicros),
    pddMs: isCall ? (pddMs ?? 0) : 0,
    pddCalls: Number(isCall && pddMs !== null),
    ...{ firstAt: startedAt, lastAt: startedAt, firstId: id, lastId: id },
    dearest: dearestOf(counted.wholeCostMicros, id),
  }
}
