import { readFileSync } from 'node:fs'
import { applySeed, type SeedPorts, type SeedReport } from '../../control/resources/seed.ts'
import type { Store } from '../../schema/storage/store.ts'
import { Ledger } from '../charging/ledger/ledger.ts'
import { type Config, readConfig } from '../config.ts'
import { HostAddresses, hostResolver } from '../dispatcher/host-addresses.ts'
import { ownPlacesOf } from '../routing/own-places.ts'
import { nowhere } from '../../schema/rules/gateways.ts'
import { type Command, type CommandContext, newDatabase, WrongUsage } from './command.ts'
import { withAudit } from './audited.ts'
import { fileProblem } from './start-errors.ts'

export const seed: Command = {
  name: 'seed',
  argument: 'FILE.json',
  summary:
    'Creates and updates what a file describes, all or nothing. It may run again, also ' +
    'beside serve.',
  createsDatabase: 'with --create',
  options: newDatabase,
  run: async ({ argument: file, options }, context) => {
    const text = read(file)
    const report = await withAudit(
      context,
      { action: 'seed', target: file },
      (store) =>
        seedFile(
          store,
          text,
          context.now(),
          seedOptionsOf(readConfig(context.environment), context),
        ),
      options['create'] === undefined ? 'must exist' : 'may be made',
    )
    for (const [section, { created, updated, unchanged }] of Object.entries(report))
      if (created + updated + unchanged > 0)
        context.print(`${section}: ${created} created, ${updated} updated, ${unchanged} unchanged`)
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
  options: SeedOptions = { hasMediaRelay: false, ownPlaces: nowhere },
): Promise<SeedReport> => applySeed(text, { ...options, store, now, ledger: new Ledger(store) })

type SeedOptions = Pick<
  SeedPorts,
  | 'hasMediaRelay'
  | 'allowsPrivateTargets'
  | 'allowsPrivateCertificates'
  | 'ownPlaces'
  | 'addressesOf'
>

function seedOptionsOf(
  config: Config,
  { schedule }: Pick<CommandContext, 'schedule'>,
): SeedOptions {
  const hosts = new HostAddresses(hostResolver(config.sip.dnsServers), schedule)
  return {
    hasMediaRelay: config.relays.length > 0,
    allowsPrivateTargets: config.webhookPrivateTargets === 'allow',
    allowsPrivateCertificates: config.stir.privateTargets === 'allow',
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
