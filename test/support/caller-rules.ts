/** Rules about callers for a rig, and the numbers of its customers. */
import { CallerIdentities } from '../../engine/call/identity/caller-identities.ts'
import type { PolicySource, StoredPolicy } from '../../engine/call/identity/caller-policies.ts'
import type { CallerIdentityRules } from '../../engine/call/identity/decide.ts'
import type { OwnedNumber, OwnedNumbers } from '../../schema/contracts/owned-numbers.ts'

/** Customer 7 of tenant 3 calls; customer 8 is another one of the same tenant. */
export const numbersOf = {
  /** The caller number of extension 101. */
  own: '+4930101',
  /** The default number of customer 7. */
  main: '+4930100',
  /** A third number of customer 7. */
  other: '+4930102',
  inactive: '+4930109',
  /** No customer has it, but tenant 3. */
  tenants: '+4930200',
  colleagues: '+4930300',
  /** The platform has it, and no customer or tenant. */
  platforms: '+4930900',
  /** The platform has listed its block for tenant 3. */
  listed: '+4930777',
  /** Nobody here has it. */
  strangers: '+4999999',
} as const

const row = (number: string, parts: Partial<OwnedNumber> = {}): OwnedNumber => ({
  id: Number(number),
  first: number,
  last: number,
  tenantId: 3,
  customerId: 7,
  displayName: '',
  attestation: null,
  isActive: true,
  ...parts,
})

const rows: readonly OwnedNumber[] = [
  row(numbersOf.own),
  row(numbersOf.main, { displayName: 'Acme' }),
  row(numbersOf.other, { attestation: 'B' }),
  row(numbersOf.inactive, { isActive: false }),
  row(numbersOf.tenants, { customerId: null }),
  row(numbersOf.colleagues, { customerId: 8 }),
  row(numbersOf.platforms, { tenantId: null, customerId: null }),
]

const ownedNumbers: OwnedNumbers = {
  find: (number) => rows.find(({ first }) => first.slice(1) === number.replace('+', '')),
  isOwned(number, { customerId }) {
    const found = this.find(number)
    return found?.isActive === true && customerId !== null && found.customerId === customerId
  },
}

export type RulesOf = Partial<Readonly<Record<PolicySource, CallerIdentityRules>>>

const ids = { extension: 101, customer: 7, dispatcher_set: 1, carrier: 9 } as const

/** What the rig's identities go by; a test may change it at any time. */
export class RiggedRules {
  rules: RulesOf = {}
  callerNumber: string | undefined = numbersOf.own
  defaultNumber: string | undefined = numbersOf.main

  readonly identities = new CallerIdentities({
    policies: {
      isEmpty: false,
      find: (of, id) => this.#find(of, id),
    },
    numbers: ownedNumbers,
    isListed: (tenantId, number) => tenantId === 3 && number.startsWith('+4930777'),
    tenantOfSet: () => 3,
  })

  #find(of: PolicySource, id: number | null | undefined): StoredPolicy | undefined {
    if (id !== ids[of]) return undefined
    const number = { extension: this.callerNumber, customer: this.defaultNumber }
    const own = of === 'extension' || of === 'customer' ? number[of] : undefined
    const rules = this.rules[of]
    return rules === undefined && own === undefined ? undefined : { id, rules, number: own }
  }
}
