/** How the state of each kind is read, and how it is restored. */
import type { z } from 'zod'
import { everywhere, type RequestScope } from '../auth/tenants.ts'
import {
  type ChangeDeps,
  fieldsOf,
  type FieldState,
  hasFields,
  type Json,
  type Kinds,
  type RestorableKind,
  shareFields,
} from '../changes/kinds.ts'
import { ApiError, notFound } from '../http/api-error.ts'
import { apiKeyKind } from './key-plans.ts'
import { carriers } from './carriers.ts'
import { customers } from './customers.ts'
import { dispatcherNodeKind } from './node-plan.ts'
import { spendingCapKind } from './spending-cap-plan.ts'
import { isLossByTenant, lossTables, setLossByTenant } from './loss-fields.ts'
import { nouns } from './nouns.ts'
import { reratingKind } from './reratings/rerating-plan.ts'
import { rateName, rates } from './rates.ts'
import {
  type AnyDefinition,
  type Definition,
  kindOf,
  resourceDeps,
  type ResourceStore,
  storeOf,
} from './resource.ts'
import { sipBanKind } from './ban-routes.ts'
import { meaningOf } from './state-meaning.ts'

/** The field of a state that tells whether a tenant has set the loss protection. */
const LOSS_WRITER = 'is_loss_by_tenant'

/** A call that ended, or what was loaded into memory. */
const irreversible = null

export const carrierKind = documentKind(carriers)

/** Balances are not among its state: money is moved, not set. */
export const customerKind = documentKind(customers, refuseWithoutCharging)

const kindsOfNouns: Kinds = Object.fromEntries(
  Object.values<AnyDefinition>(nouns).map((noun) => [kindOf(noun), documentKind(noun)]),
)

export const kinds: Kinds = {
  ...kindsOfNouns,
  // These three replace the kinds that the nouns give.
  carrier: carrierKind,
  customer: customerKind,
  rate: { ...documentKind(rates), nameOf: (rate, { store }) => rateName(rate, store) },
  api_key: apiKeyKind,
  dispatcher_node: dispatcherNodeKind,
  dispatcher_sets: irreversible,
  live_call: irreversible,
  sip_ban: sipBanKind,
  rerating: reratingKind,
  spend_guard: spendingCapKind,
}

function refuseWithoutCharging({ ocs }: ChangeDeps): void {
  if (ocs === undefined)
    throw new ApiError(503, 'charging_elsewhere', 'Another system charges the calls')
}

/**
 * Resources as kinds of changes: their state is the body that would write them, without secrets.
 */
type AnyResource = ResourceStore<z.ZodObject, z.ZodObject>

/** @param admitUse throws an `ApiError` where the resource cannot be written at all. */
function documentKind<Body extends z.ZodObject, View extends z.ZodObject>(
  definition: Definition<Body, View>,
  admitUse: (deps: ChangeDeps) => void = () => undefined,
): RestorableKind {
  const { noun, fields, table } = definition
  const lossTable = lossTables.find((each) => each === table)
  const isAmount = (field: string): boolean => fields.columns[field]?.isAmount === true
  const stateName = (field: string) => (isAmount(field) ? `${field}_micros` : field)
  const bodyName = (name: string) => {
    const field = name.replace(/_micros$/, '')
    return field !== name && isAmount(field) ? field : name
  }
  const resourceOf = (deps: ChangeDeps): AnyResource => {
    admitUse(deps)
    return storeOf<z.ZodObject, z.ZodObject>(definition, resourceDeps(deps))
  }
  return {
    isRow: true,
    async read(id, deps) {
      const document = await resourceOf(deps).document(everywhere, Number(id))
      if (document === undefined) return null
      const state = renamed(asJson(document), stateName)
      if (lossTable === undefined) return state
      return { ...state, [LOSS_WRITER]: await isLossByTenant(deps.store, lossTable, Number(id)) }
    },
    async restore(id, state, deps, asker) {
      const resource = resourceOf(deps)
      if (state === null) return remove(resource, Number(id), asker)
      const fieldsBefore = fieldsOf(state)
      const document = await resource.document(asker, Number(id))
      if (document === undefined || fieldsBefore === null) throw notFound(noun)
      const { [LOSS_WRITER]: isByTenant, ...values } = fieldsBefore
      await resource.replace(Number(id), { ...document, ...renamed(values, bodyName) }, asker)
      // An undo by the platform leaves the protection with the tenant that had set it.
      if (lossTable !== undefined && asker.tenantId === null && typeof isByTenant === 'boolean')
        await setLossByTenant(deps.store, lossTable, Number(id), isByTenant)
    },
    meaningOf: (id, state, names, { store }) =>
      meaningOf(store, { kind: kindOf(definition), id }, state, names),
    isSame: hasFields,
    isAbout: shareFields,
    async admit(id, { to }, { tenantId, domain, actor }, deps) {
      const scope = { tenantId, domain, actor, now: deps.now() }
      const resource = resourceOf(deps)
      if ((await resource.find(scope, Number(id))) === undefined) throw notFound(noun)
      if (to === null) await resource.refuseUndoing(Number(id))
    },
    follow: async (deps, id) => definition.follow?.(deps, { id: Number(id) }),
  }
}

/** Removes a row as DELETE does: it refuses while something depends on the row. */
async function remove(resource: AnyResource, id: number, asker: RequestScope): Promise<void> {
  if ((await resource.remove(id, asker)) === 'absent') throw notFound(resource.noun)
}

/** A document is a body of JSON; fields that it leaves open are not there. */
const asJson = (document: object): FieldState =>
  fieldsOf(JSON.parse(JSON.stringify(document)) as Json) ?? {}

const renamed = (fields: FieldState, name: (field: string) => string): FieldState =>
  Object.fromEntries(Object.entries(fields).map(([field, value]) => [name(field), value]))
