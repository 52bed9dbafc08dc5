/** Plans for setting and removing spend guards. */
import { timeToText } from '../../schema/columns.ts'
import type { Principal } from '../auth/principal.ts'
import { requestScope } from '../auth/tenants.ts'
import type { Plan } from '../changes/change.ts'
import type { Json, RestorableKind } from '../changes/kinds.ts'
import { ApiError, badRequest, notFound } from '../http/api-error.ts'
import { exactMoneyText, quoted } from '../http/clean-text.ts'
import {
  cappedCalls,
  type SpendingCapDeps,
  type SpendingCapState,
  spendingCapState,
  SpendingCapStore,
  stateOf,
} from './spending-cap-store.ts'
import {
  currencyOf,
  type SpendingCapBody,
  type CapTarget,
  type SpendingCapView,
  scopeOf,
  type ShownSpendingCap,
  storedPrefix,
  targetOf,
  viewsOf,
} from './spending-cap-view.ts'
import { badReference } from './references.ts'

/** The caller who sets or removes a guard, and the reason. */
export interface SpendingCapUse extends SpendingCapDeps {
  readonly principal: Principal
  /** A new UUID; a new guard gets it, too. */
  readonly changeId: string
  readonly reason: string | null
  /** Milliseconds UTC; null: until it is removed. */
  readonly expiresAt: number | null
  /** How long that is, as the end of a clause; absent: the effect names the time. */
  readonly lasting?: string
}

type SpendingCapPlan = Plan<{ readonly guard: SpendingCapView }>

/** A repeated request keeps the first end, when it is so close. */
const SAME_END_MS = 60_000

export async function planSpendingCap(
  body: SpendingCapBody,
  use: SpendingCapUse,
): Promise<SpendingCapPlan> {
  const { store, principal, now } = use
  const at = now()
  const guards = new SpendingCapStore(store)
  const prefix = storedPrefix(body.prefix, use.ocs.exitCodes)
  const target = await targetOf(store, { ...body, prefix }, requestScope(principal, now))
  const terms = await termsOf(body, target, use)
  const present = await guards.present(target, setterOf(principal), at)
  const before = present === undefined ? null : stateOf(present)
  const capUuid = present?.guard_uuid ?? use.changeId
  const isSame =
    before !== null && says(before, terms) && !body.end_live_calls && lasts(before, use)
  const after = isSame ? before : { ...newState(target, before, use, at), ...terms }
  if (body.end_live_calls) after.ends_calls_before = at
  const shown = async (state: SpendingCapState): Promise<SpendingCapView> => {
    const row = { ...state, ...namesOf(target), guard_uuid: capUuid, ended_at: null }
    return viewOfRow(guards, row, at)
  }
  return {
    target: { kind: 'spend_guard', id: capUuid },
    row: `${target.scope} ${target.scopeId}`,
    before,
    after,
    undo: 'restores',
    effect: isSame
      ? `Nothing changes: such a spend guard is set already${until(before.expires_at)}.`
      : `${effectOf(target, after, endOf(after, use))}${endedCalls(body)}`,
    affected: await cappedCalls(target, use),
    preview: { guard: await shown(after) },
    async apply() {
      // The target may have been deleted since it was resolved.
      if (!(await guards.isOwned(after))) throw badReference(target.scope, 'does not exist')
      await guards.put(capUuid, after, at)
      return { guard: await shown(after) }
    },
  }
}

/** A guard of the platform is removed by the platform. */
export async function planRemoval(capUuid: string, use: SpendingCapUse): Promise<SpendingCapPlan> {
  const { store, principal, now } = use
  const at = now()
  const guards = new SpendingCapStore(store)
  const row = await guards.find(principal.tenantId, capUuid)
  if (row === undefined) throw notFound(noun)
  refuseForeign(row, principal)
  const before = await guards.state(capUuid)
  const view = await viewOfRow(guards, row, at)
  const { scope, scope_id: scopeId, name } = scopeOf(row)
  const { number, extension_tenant: tenantId } = row
  const extension = number === null || tenantId === null ? null : { number, tenantId }
  const brake = { scope, scopeId, prefix: row.prefix, extension }
  const whose = `${scope} ${quoted(name ?? '')}`
  return {
    target: { kind: 'spend_guard', id: capUuid },
    before,
    after: null,
    undo: 'restores',
    effect:
      before === null
        ? 'Nothing changes: the spend guard was removed before.'
        : `${callsOf(whose, row.prefix)} are no longer limited by this guard, ${limitOf(before)}.`,
    affected: await cappedCalls(brake, use),
    preview: { guard: view },
    async apply() {
      await guards.end(capUuid, principal.actor, at)
      return { guard: { ...view, state: 'removed', removed_at: timeToText(at) } }
    },
  }
}

type Terms = Pick<SpendingCapState, 'action' | 'amount_micros' | 'currency' | 'per'>

async function termsOf(
  { action, amount, per }: SpendingCapBody,
  target: CapTarget,
  { store }: SpendingCapUse,
): Promise<Terms> {
  if (action === 'block') {
    if (amount === undefined && per === undefined)
      return { action, amount_micros: 0, currency: null, per: null }
    throw badRequest('A block has no amount', [
      { path: amount === undefined ? 'per' : 'amount', message: 'is for action cap only' },
    ])
  }
  if (amount === undefined)
    throw badRequest('A cap needs an amount', [{ path: 'amount', message: 'is required' }])
  const currency = await currencyOf(store, target)
  return { action, amount_micros: amount, currency, per: per ?? 'duration' }
}

const says = (before: SpendingCapState, terms: Terms): boolean =>
  before.action === terms.action &&
  before.amount_micros === terms.amount_micros &&
  before.currency === terms.currency &&
  before.per === terms.per

/** Setting a guard again never shortens it; removing does. */
function lasts({ expires_at: end }: SpendingCapState, { expiresAt }: SpendingCapUse): boolean {
  if (end === null) return true
  return expiresAt !== null && expiresAt - end < SAME_END_MS
}

/** A guard that is set again keeps its start, and with it the used part of its cap. */
function newState(
  target: CapTarget,
  before: SpendingCapState | null,
  { principal, reason, expiresAt }: SpendingCapUse,
  at: number,
): Omit<SpendingCapState, keyof Terms> {
  const ownId = (scope: CapTarget['scope']) => (target.scope === scope ? target.scopeId : null)
  const end = before?.expires_at
  const isLonger =
    before !== null && (end === null || (expiresAt !== null && expiresAt < (end ?? 0)))
  return {
    customer_id: ownId('customer'),
    extension_id: ownId('extension'),
    tenant_id: ownId('tenant'),
    set_by_tenant_id: setterOf(principal),
    prefix: target.prefix,
    reason: reason ?? '',
    created_by: principal.actor,
    created_at: before?.created_at ?? at,
    expires_at: isLonger ? (end ?? null) : expiresAt,
    ends_calls_before: before?.ends_calls_before ?? null,
  }
}

const namesOf = ({ scope, name, extension, tenantId }: CapTarget) => ({
  customer: scope === 'customer' ? name : null,
  customer_tenant: tenantId,
  number: extension?.number ?? null,
  domain: scope === 'extension' ? name.slice(name.indexOf('@') + 1) : null,
  extension_tenant: extension?.tenantId ?? null,
  tenant: scope === 'tenant' ? name : null,
})

async function viewOfRow(
  guards: SpendingCapStore,
  row: ShownSpendingCap,
  at: number,
): Promise<SpendingCapView> {
  const [view] = await viewsOf(guards, [row], at)
  if (view === undefined) throw notFound(noun)
  return view
}

function effectOf(
  { scope, name, prefix }: CapTarget,
  state: SpendingCapState,
  end: string,
): string {
  const calls = callsOf(`${scope} ${quoted(name)}`, prefix)
  return state.action === 'block'
    ? `${calls} are refused${end}.`
    : `${calls} may cost ${amountOf(state)}${end}; beyond, they are refused or ended.`
}

/** A guard that ends with the change says how long it lasts; one that lasts longer, until when. */
const endOf = (
  { expires_at: end }: SpendingCapState,
  { expiresAt, lasting }: SpendingCapUse,
): string => (lasting !== undefined && end === expiresAt ? lasting : until(end))

const limitOf = (state: SpendingCapState): string =>
  state.action === 'block' ? 'which refused them' : `which let them cost ${amountOf(state)}`

const amountOf = ({ amount_micros: amount, currency, per }: SpendingCapState): string =>
  `${exactMoneyText(amount, currency)} ${per === 'day' ? 'on each day (UTC)' : 'in all'}`

const callsOf = (whose: string, prefix: string): string =>
  prefix === ''
    ? `Calls of ${whose} to all numbers but emergency numbers`
    : `Calls of ${whose} to numbers that begin with ${quoted(prefix)}`

const until = (at: number | null): string => (at === null ? '' : ` until ${timeToText(at)}`)

const endedCalls = ({ end_live_calls: isEnding }: SpendingCapBody): string =>
  isEnding ? ' Answered calls are ended within 5 s, which cannot be undone.' : ''

/** Its name in an error: `Spend guard not found`. */
export const noun = 'Spend guard'

/** Throws 403 for a tenant when the platform has set the guard. */
function refuseForeign(
  { set_by_tenant_id: setBy }: Pick<SpendingCapState, 'set_by_tenant_id'>,
  principal: Setter,
): void {
  const tenantId = setterOf(principal)
  if (tenantId === null || setBy === tenantId) return
  throw new ApiError(
    403,
    'platform_only',
    'The platform has set this spend guard. Nothing was changed: only the platform can ' +
      'change or remove it',
  )
}

type Setter = Pick<Principal, 'tenantId' | 'isGlobal'>

/**
 * The tenant that owns a guard set by this principal; null: the platform, also when it acts in a
 * tenant.
 */
const setterOf = ({ tenantId, isGlobal = false }: Setter): number | null =>
  isGlobal ? null : tenantId

/** The kind of changes to spend guards. Their id is their UUID. */
export const spendingCapKind: RestorableKind = {
  isRow: true,
  read: async (id, { store }) => {
    const state = await new SpendingCapStore(store).state(id)
    return state && { ...state }
  },
  async restore(id, state, { store, now }) {
    const guards = new SpendingCapStore(store)
    if (state === null) return guards.end(id, 'undo', now())
    const guard = capIn(state)
    if (!(await guards.isOwned(guard))) throw notFound(noun)
    await guards.put(id, guard, now())
  },
  admit(_, { from, to }, principal) {
    for (const state of [from, to]) if (state !== null) refuseForeign(capIn(state), principal)
    return Promise.resolve()
  },
  follow: async ({ ocs }) => ocs?.reloadSpendingCaps(),
}

const capIn = (state: Json): SpendingCapState => spendingCapState.parse(state)
