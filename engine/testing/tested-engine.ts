/**
 * An engine on a database in memory that decides about calls, and serves none: it is never started,
 * its clock stands still, and it asks no DNS.
 */
import { readFile } from 'node:fs/promises'
import type { HookPort } from '../../schema/contracts/hooks.ts'
import { CallJournal } from '../../schema/journal/call-journal.ts'
import { MemoryFile } from '../../schema/journal/memory-file.ts'
import { migrate } from '../../schema/migrations/migrate.ts'
import { openDatabase } from '../../schema/sqlite/open.ts'
import type { LocalStore } from '../../schema/storage/store.ts'
import { Ocs } from '../charging/ocs.ts'
import { seedFile } from '../commands/seed.ts'
import { type Config, readConfig } from '../config.ts'
import { createEngine } from '../create-engine.ts'
import type { Engine } from '../engine.ts'
import { pricesOf } from '../prices-of-ocs.ts'
import { ownPlacesOf } from '../routing/own-places.ts'
import { settings } from '../settings.ts'
import type { TestKitOptions } from './published.ts'
import { registerPhones } from './registered-phones.ts'

export interface TestedEngineDeps {
  /** When the kit is opened: milliseconds UTC. */
  readonly openedAt: number
  readonly config: Config
  /** Absent: there are no hooks. */
  readonly hooks: HookPort | undefined
  readonly randomBytes: (size: number) => Buffer
}

export interface TestedEngine {
  readonly store: LocalStore
  readonly engine: Engine
}

/** Settings that have a part in what becomes of a call. */
const effective = [
  settings.exitCodes,
  settings.unknownCaller,
  settings.trustedSources,
  settings.edgeProxies,
  settings.tenantNetworks,
  settings.passedHeaders,
  settings.sipHostNames,
  settings.foreignDomains,
  settings.hooksTimeoutMs,
  settings.hooksFallback,
].map(({ name }) => name)

/** @throws {Error} a setting is wrong, or has no effect on a kit. */
export function configOf({ settings: given = {} }: TestKitOptions): Config {
  const idle = Object.keys(given).find((name) => !effective.includes(name))
  if (idle !== undefined)
    throw new Error(`settings: ${idle} has no effect here; ${effective.join(', ')} have`)
  // The hooks are given apart: their limits are read beside the name of a file.
  return readConfig({ ...given, DATABASE_PATH: ':memory:', HOOKS: 'hooks.ts' })
}

/** @throws {SeedRefused} the seed file is not valid. @throws {Error} it cannot be read. */
export async function openEngine(
  options: TestKitOptions,
  deps: TestedEngineDeps,
): Promise<TestedEngine> {
  const store = openDatabase(':memory:')
  try {
    migrate(store.sqlite, deps.openedAt)
    await seedFile(store, await seedText(options.seed), deps.openedAt, {
      hasMediaRelay: deps.config.relays.length > 0,
      allowsPrivateTargets: deps.config.webhookPrivateTargets === 'allow',
      allowsPrivateCertificates: deps.config.stir.privateTargets === 'allow',
      ownPlaces: ownPlacesOf(deps),
    })
    await registerPhones(store, options.phones ?? [], deps.openedAt)
    return { store, engine: await engineOn(store, options, deps) }
  } catch (error) {
    store.close()
    throw error
  }
}

async function seedText(seed: TestKitOptions['seed']): Promise<string> {
  return typeof seed === 'string' ? readFile(seed, 'utf8') : JSON.stringify(seed)
}

async function engineOn(
  store: LocalStore,
  { hosts = {} }: TestKitOptions,
  { openedAt, config, hooks, randomBytes }: TestedEngineDeps,
): Promise<Engine> {
  const now = (): number => openedAt
  const clocks = { now, wallNow: now, schedule: () => () => undefined, log: () => undefined }
  const journal = new CallJournal(new MemoryFile(), { ...clocks, storage: store.storage })
  const { unknownCaller, exitCodes } = config
  const every = () => () => undefined
  const charging = await Ocs.open({ ...clocks, every, store, journal, unknownCaller, exitCodes })
  const engine = createEngine({
    ...clocks,
    config,
    store,
    charging,
    hooks,
    randomBytes,
    instance: { name: 'test' },
    databaseId: 'test',
    whyClosed: () => undefined,
    random: () => 0.5,
    newUuid: () => randomBytes(16).toString('hex'),
    canRecord: () => true,
    resolveHost: (host) => Promise.resolve({ addresses: hosts[host] ?? [], ttlMs: 0 }),
    prices: pricesOf(charging, now),
    foresee: (asked) => charging.foresee(asked),
    payerOf: (asked) => charging.payerOf(asked),
  })
  // Not its routing webhooks: nothing leaves a kit.
  await engine.dispatcher.reload()
  await engine.routing.reload()
  await engine.registrar.load()
  return engine
}
