import { readFileSync } from 'node:fs'
import { seedFile } from '../../control/provisioning/seed.ts'
import { type Command, WrongUsage } from './command.ts'
import { withAudit } from './audited.ts'

export const seed: Command = {
  name: 'seed',
  argument: 'FILE.json',
  summary: 'Provisions from a file, all or nothing; may be repeated, also while serving.',
  createsDatabase: true,
  run: async ({ argument: file }, world) => {
    const text = read(file)
    const report = await withAudit(world, { action: 'seed', target: file }, (store) =>
      seedFile(store, text, world.now()),
    )
    for (const [section, { created, updated, unchanged }] of Object.entries(report))
      if (created + updated + unchanged > 0)
        world.print(`${section}: ${created} created, ${updated} updated, ${unchanged} unchanged`)
    return 0
  },
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new WrongUsage(error instanceof Error ? error.message : String(error))
  }
}
