/**
 * Loads parts of this process again when another process, or a command, has changed their tables.
 */
import type {
  ChangedPayers,
  ChangedRouting,
  ChangedRows,
} from '../schema/contracts/changed-rows.ts'
import type { Changes, Details, Follower } from '../schema/changes/changes.ts'
import type { PolicySource } from './call/identity/caller-policies.ts'
import type { Ocs } from './charging/ocs.ts'
import type { Engine } from './engine.ts'

/** 100,000 rates take about half a second. */
const RATES_INTERVAL_MS = 1_000
const CUSTOMERS_INTERVAL_MS = 250

/** During an attack many are found. */
const BANS_INTERVAL_MS = 500

/** Reading 100,000 extensions takes about half a second. */
const EXTENSIONS_INTERVAL_MS = 500

/** Reading 100,000 numbers takes about half a second. */
const NUMBERS_INTERVAL_MS = 500

/** Rows that are read by their ids; beyond so many, all are read. */
const MAX_ROWS = 5_000

export function followForCharging(changes: Changes, ocs: Ocs): void {
  const payers = (of: ChangedPayers['of'], topics: Follower['topics']): void =>
    void changes.follow({
      topics,
      reload: (details) => ocs.reloadCustomers(changedOf(of, details)),
      intervalMs: CUSTOMERS_INTERVAL_MS,
      maxDetails: MAX_ROWS,
    })
  payers('customer', ['customer', 'wallet'])
  payers('tenant', ['tenant'])
  payers('extension', ['extension'])
  changes.follow({
    topics: ['rate', 'rate_plan'],
    reload: (details) => reloadRates(ocs, details),
    intervalMs: RATES_INTERVAL_MS,
  })
  changes.follow({
    topics: ['tenant'],
    reload: () => ocs.reloadTimes(),
    intervalMs: RATES_INTERVAL_MS,
  })
  followSpendingCaps(changes, ocs)
}

/** Many may be set one after the other; the next call is braked soon enough. */
const GUARDS_INTERVAL_MS = 100

const followSpendingCaps = (changes: Changes, guards: Pick<Ocs, 'reloadSpendingCaps'>): void =>
  void changes.follow({
    topics: ['spend_guard'],
    reload: () => guards.reloadSpendingCaps(),
    intervalMs: GUARDS_INTERVAL_MS,
  })

/** A detail is a plan, or a plan and one of its prefixes. */
async function reloadRates(ocs: Ocs, details: Details): Promise<void> {
  const places = details === 'all' ? undefined : [...details].map((detail) => detail.split('/'))
  if (places === undefined) return ocs.reloadRates()
  for (const [planId, prefix] of places)
    if (prefix === undefined) await ocs.reloadPlan(Number(planId))
    else await ocs.reloadPrefix(Number(planId), prefix)
}

/** Undefined: of all. */
const idsOf = (details: Details): readonly number[] | undefined =>
  details === 'all' ? undefined : [...details].map(Number)

const changedOf = <Kind extends string>(
  of: Kind,
  details: Details,
): ChangedRows<Kind> | undefined => {
  const ids = idsOf(details)
  return ids && { of, ids }
}

export function followForEngine(changes: Changes, engine: Engine): void {
  changes.follow({
    topics: ['dispatcher_set', 'dispatcher_node'],
    reload: () => engine.dispatcher.reload(),
  })
  const routing = (of: ChangedRouting['of'], topics: Follower['topics']): void =>
    void changes.follow({
      topics,
      reload: (details) => engine.routing.reload(changedOf(of, details)),
      maxDetails: MAX_ROWS,
    })
  routing('carrier', ['carrier', 'carrier_gateway'])
  routing('outbound_route', ['outbound_route'])
  routing('inbound_route', ['inbound_route'])
  routing('agent', ['ai_agent'])
  changes.follow({
    topics: ['phone_number'],
    reload: async (details) =>
      void (await engine.ownedNumbers.reload(changedOf('number', details))),
    intervalMs: NUMBERS_INTERVAL_MS,
    maxDetails: MAX_ROWS,
  })
  const policies = (of: PolicySource): void =>
    void changes.follow({
      topics: [of],
      reload: (details) => engine.callerPolicies.reload(changedOf(of, details)),
      intervalMs: EXTENSIONS_INTERVAL_MS,
      maxDetails: MAX_ROWS,
    })
  policies('extension')
  policies('customer')
  policies('dispatcher_set')
  policies('carrier')
  changes.follow({ topics: ['routing_webhook'], reload: () => engine.routingWebhooks.reload() })
  changes.follow({ topics: ['stir_key', 'stir_authority'], reload: () => engine.stir.reload() })
  routing('tenant', ['tenant', 'tenant_domain', 'tenant_number'])
  changes.follow({
    topics: ['tenant', 'tenant_domain'],
    reload: (details) => engine.registrar.reloadTenants(idsOf(details)),
    maxDetails: MAX_ROWS,
  })
  if (engine.sharedBans)
    changes.follow({
      topics: ['source_ban'],
      reload: async (details) => engine.sharedBans?.reload(details),
      intervalMs: BANS_INTERVAL_MS,
    })
  changes.follow({
    topics: ['extension'],
    reload: (details) => engine.registrar.reload(idsOf(details)),
    intervalMs: EXTENSIONS_INTERVAL_MS,
    maxDetails: MAX_ROWS,
  })
}
