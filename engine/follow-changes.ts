/** What of this process is loaded again when another process, or a command, has changed which tables. */
import type { Changes, Details } from '../schema/changes/changes.ts'
import type { Ocs } from './charging/ocs.ts'
import type { Engine } from './engine.ts'

/** 100,000 rates take about half a second. */
const RATES_INTERVAL_MS = 1_000
const CUSTOMERS_INTERVAL_MS = 250

/** During an attack many are found. */
const BANS_INTERVAL_MS = 500

/** Reading 100,000 extensions takes about half a second. */
const EXTENSIONS_INTERVAL_MS = 500

export function followForCharging(changes: Changes, ocs: Ocs): void {
  changes.follow({
    topics: ['customer', 'customer_number', 'wallet', 'tenant', 'extension'],
    reload: () => ocs.reloadCustomers(),
    intervalMs: CUSTOMERS_INTERVAL_MS,
  })
  changes.follow({
    topics: ['rate', 'rate_plan'],
    reload: (details) => reloadRates(ocs, details),
    intervalMs: RATES_INTERVAL_MS,
  })
  followSpendGuards(changes, ocs)
}

/** Many may be set one after the other; the next call is braked soon enough. */
const GUARDS_INTERVAL_MS = 100

const followSpendGuards = (changes: Changes, guards: Pick<Ocs, 'reloadSpendGuards'>): void =>
  void changes.follow({
    topics: ['spend_guard'],
    reload: () => guards.reloadSpendGuards(),
    intervalMs: GUARDS_INTERVAL_MS,
  })

/** A detail is a plan and one of its prefixes. */
async function reloadRates(ocs: Ocs, details: Details): Promise<void> {
  const places = details === 'all' ? undefined : [...details].map((detail) => detail.split('/'))
  if (places === undefined) return ocs.reloadRates()
  for (const [planId, prefix = ''] of places) await ocs.reloadPrefix(Number(planId), prefix)
}

/** Undefined: of all extensions. */
const idsOf = (details: Details): readonly number[] | undefined =>
  details === 'all' ? undefined : [...details].map(Number)

export function followForEngine(changes: Changes, engine: Engine): void {
  changes.follow({
    topics: ['dispatcher_set', 'dispatcher_node'],
    reload: () => engine.dispatcher.reload(),
  })
  changes.follow({
    topics: [
      ...(['carrier', 'carrier_gateway', 'outbound_route', 'inbound_route'] as const),
      ...(['tenant', 'tenant_domain', 'tenant_number', 'ai_agent'] as const),
    ],
    reload: () => engine.routing.reload(),
  })
  changes.follow({
    topics: ['tenant', 'tenant_domain'],
    reload: () => engine.registrar.reloadTenants(),
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
  })
}
