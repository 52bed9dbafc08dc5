import { existsSync } from 'node:fs'
import { findDamage } from '../../schema/check.ts'
import { brokenClaims } from '../../schema/ownership/claims.ts'
import { LocalSecrets } from '../../schema/secrets/secrets.ts'
import { readServer } from '../../schema/postgres/open.ts'
import { newestVersion } from '../../schema/migrations/index.ts'
import { openUntouched } from '../../schema/storage/untouched.ts'
import { readConfig } from '../config.ts'
import { isServed } from '../serving-lock.ts'
import type { Command, ExitCode, World } from './command.ts'
import { settingNotes } from './setting-notes.ts'

export const check: Command = {
  name: 'check',
  summary: 'Tells whether the settings are right and the database is whole; changes nothing.',
  run: async (_input, world) => {
    const { databasePath, databaseUrl, secretKey } = readConfig(world.environment)
    const notes = settingNotes(world.environment, world.settingsFile)
    for (const line of notes) world.print(`settings: ${line}`)
    if (notes.length === 0) world.print('settings: right')
    if (databaseUrl !== undefined) return checkServer(databaseUrl, world)
    if (!existsSync(databasePath)) {
      world.print(`database: ${databasePath} does not exist yet; serve or migrate creates it`)
      return 0
    }
    const untouched = openUntouched(databasePath, isServed(databasePath))
    const { sqlite, close } = untouched
    try {
      const damage = findDamage(sqlite)
      // Version 0: an empty file, without secrets.
      const isEmpty = sqlite.pragma('user_version', { simple: true }) === 0
      const problem = isEmpty
        ? undefined
        : new LocalSecrets(sqlite, secretKey, databasePath).problem()
      if (problem !== undefined) damage.push(problem)
      for (const line of damage) world.print(`database: ${line}`)
      if (damage.length === 0) world.print(`database: ${databasePath} is whole`)
      // They lose at recognition, which is no damage.
      const claims = damage.length === 0 && !isEmpty ? await brokenClaims(untouched) : []
      for (const line of claims) world.print(`ownership: ${line}`)
      return damage.length === 0 ? 0 : 1
    } finally {
      close()
    }
  },
}

/** Its server looks after the files. */
async function checkServer(url: string, world: World): Promise<ExitCode> {
  const { name, version, claims } = await readServer(url)
  const isCurrent = version === newestVersion
  world.print(
    isCurrent
      ? `database: ${name} has schema version ${version}`
      : `database: ${name} has schema version ${version}, this program needs ${newestVersion}; serve or migrate brings it there`,
  )
  for (const line of claims) world.print(`ownership: ${line}`)
  return 0
}
