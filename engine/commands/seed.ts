import { readFileSync } from 'node:fs'
import { applySeed, type SeedPorts, type SeedReport } from '../../control/resources/seed.ts'
import type { Store } from '../../schema/open.ts'
import { createLedger } from '../charging/ledger/ledger.ts'
import { type Config, readConfig } from '../config.ts'
import { HostAddresses, hostResolver } from '../dispatcher/host-addresses.ts'
import { ownPlacesOf } from '../routing/own-places.ts'
import { nowhere } from '../../schema/rules/gateways.ts'
import { type Command, type World, WrongUsage } from './command.ts'
import { withAudit } from './audited.ts'
import { fileProblem } from './start-errors.ts'

export const seed: Command = {
  name: 'seed',
  argument: 'FILE.json',
  summary: 'Provisions from a file, all or nothing; may be repeated, also while serving.',
  createsDatabase: 'with --create',
  run: async ({ argument: file, options }, world) => {
    const text = read(file)
    const report = await withAudit(
      world,
      { action: 'seed', target: file },
      (store) =>
        seedFile(store, text, world.now(), surroundingsOf(readConfig(world.environment), world)),
      options['create'] === undefined ? 'must exist' : 'may be made',
    )
    for (const [section, { created, updated, unchanged }] of Object.entries(report))
      if (created + updated + unchanged > 0)
        world.print(`${section}: ${created} created, ${updated} updated, ${unchanged} unchanged`)
    return 0
  },
}

/**
 * @param now milliseconds UTC.
 * @throws {SeedRefused} the file is not valid, or contradicts what is stored.
 */
export const seedFile = async (
  store: Store,
  text: string,
  now: number,
  around: Surroundings = { hasMediaRelay: false, ownPlaces: nowhere },
): Promise<SeedReport> => applySeed(text, { ...around, store, now, ledger: createLedger(store) })

type Surroundings = Pick<SeedPorts, 'hasMediaRelay' | 'ownPlaces' | 'addressesOf'>

function surroundingsOf(config: Config, { schedule }: Pick<World, 'schedule'>): Surroundings {
  const hosts = new HostAddresses(hostResolver(config.sip.dnsServers), schedule)
  return {
    hasMediaRelay: config.relays.length > 0,
    ownPlaces: ownPlacesOf({ config }),
    addressesOf: (names) => hosts.lookUp(names),
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new WrongUsage(`cannot read ${file}: ${fileProblem(error)}`)
  }
}
