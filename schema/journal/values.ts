/** Records are written as their values alone: the names are a third of a line, and all calls have the same. */
import type { OpenCall, SavedGrant, Tariff } from './call-journal.ts'

export type Values = readonly unknown[]

/** New fields come last: lines of an earlier version do not have them. */
class Form<T extends object> {
  readonly #names: readonly (keyof T & string)[]

  constructor(names: readonly (keyof T & string)[]) {
    this.#names = names
  }

  write(record: Partial<T>): Values {
    return this.#names.map((name) => record[name])
  }

  read(values: Values): T {
    const fields = this.#names.map((name, index) => [name, values[index]] as const)
    // What is absent has become null; no field that may be absent is ever null.
    const present = fields.filter(([name, value]) => value !== null || !optional.has(name))
    return Object.fromEntries(present) as T
  }
}

const optional: ReadonlySet<string> = new Set([
  'isFree',
  'answeredAt',
  'extensionId',
  'mayNamePayer',
  'isEmergencyNumber',
  'sentAs',
  'instance',
])

/** The uuid comes first: a damaged line is named by it. */
export const callForm = new Form<OpenCall>([
  'callUuid',
  'callId',
  'direction',
  'callerNumber',
  'callerName',
  'calledNumber',
  'startedAt',
  'answeredAt',
  'postDialDelayMs',
  'denialCode',
  'setId',
  'node',
  'carrier',
  'attempts',
  'tenantId',
  'customerId',
  'ratePrefix',
  'currency',
  'sourceAddress',
  'isUnauthorizedByOcs',
  'isFree',
  'instance',
])

export const tariffForm = new Form<Tariff>([
  'prefix',
  'currency',
  'connectFeeMicros',
  'firstIncrementSeconds',
  'firstRatePerMinuteMicros',
  'incrementSeconds',
  'ratePerMinuteMicros',
  'decimals',
])

export const grantForm = new Form<SavedGrant>([
  'payerId',
  'maxSeconds',
  'grantedSeconds',
  'amountMicros',
  'isLastGrant',
  'extensionId',
  'sourceTenantId',
  'mayNamePayer',
  'isEmergencyNumber',
  'sentAs',
])
