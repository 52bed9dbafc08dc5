/**
 * Commands of `tollgate` on the database of a program, in this process: one of its own takes 0.7 s
 * of a core.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import type { Command, CommandInput } from '../../engine/commands/command.ts'
import { keyCreate } from '../../engine/commands/key-create.ts'
import { seed } from '../../engine/commands/seed.ts'
import { fakeWorld } from '../engine/commands/fake-world.ts'
import { emptyStore } from './empty-store.ts'

type Environment = Record<string, string>

/** `tollgate seed FILE` on a database that is migrated already. */
export async function provision(environment: Environment, file: string): Promise<void> {
  // One on a server is migrated by the command.
  if (environment['DATABASE_URL'] === undefined)
    emptyStore(Date.now(), environment['DATABASE_PATH']).close()
  await run(seed, environment, { argument: file, options: { create: 'on' } })
}

/** `tollgate key create` with these options; answers with the token. */
export async function createKey(
  environment: Environment,
  words: readonly string[],
): Promise<string> {
  const options: Record<string, string> = {}
  for (let i = 0; i < words.length; i += 2)
    options[words[i]?.replace(/^--/, '') ?? ''] = words[i + 1] ?? ''
  const [token = ''] = await run(keyCreate, environment, { options })
  return token
}

/** Runs a command; returns what it prints. */
async function run(
  command: Command,
  environment: Environment,
  input: Partial<CommandInput>,
): Promise<readonly string[]> {
  const world = fakeWorld(environment)
  const now = { now: Date.now, steadyNow: Date.now, newUuid: randomUUID, randomBytes }
  const code = await command.run(
    { argument: '', words: [], options: {}, ...input },
    { ...world, ...now },
  )
  if (code !== 0) throw new Error(`${command.name}: exit ${code}: ${world.complaints.join('\n')}`)
  return world.printed
}
