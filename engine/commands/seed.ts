import { readFileSync } from 'node:fs'
import { applySeed, type SeedReport } from '../../control/provisioning/seed.ts'
import type { Store } from '../../schema/open.ts'
import { createLedger } from '../charging/ledger/ledger.ts'
import { readConfig } from '../config.ts'
import { type Command, WrongUsage } from './command.ts'
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
        seedFile(store, text, world.now(), readConfig(world.environment).relays.length > 0),
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
  hasMediaRelay = false,
): Promise<SeedReport> =>
  applySeed(text, { store, now, ledger: createLedger(store), hasMediaRelay })

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new WrongUsage(`cannot read ${file}: ${fileProblem(error)}`)
  }
}
