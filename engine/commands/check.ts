import { existsSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { findDamage } from '../../schema/migrations/migrate.ts'
import { databaseId, databaseIdOf, JournalMark } from '../../schema/journal/journal-mark.ts'
import { differencesOf, settingsOfLiving } from '../../schema/instances/settings-of-instances.ts'
import type { Store } from '../../schema/storage/store.ts'
import { openUnmodified } from '../../schema/sqlite/open.ts'
import { brokenClaims } from '../../schema/rules/ownership.ts'
import { LocalSecrets } from '../../schema/secrets/local-secrets.ts'
import { readServer } from '../../schema/postgres/open.ts'
import { newestVersion } from '../../schema/migrations/index.ts'
import { type Config, readConfig } from '../config.ts'
import { isServed } from '../serving-lock.ts'
import { commonSettings } from '../stores/common-settings.ts'
import { instanceNameOf } from '../stores/instance-place.ts'
import { numberNotes } from '../stores/number-notes.ts'
import type { Command, ExitCode, CommandContext } from './command.ts'
import { settingNotes } from './settings-in-force.ts'

export const check: Command = {
  name: 'check',
  summary: 'Checks the settings and the database. Changes nothing.',
  run: async (_input, context) => {
    const config = readConfig(context.environment)
    const { databasePath, databaseUrl, secretKey } = config
    const notes = settingNotes(context.environment, context.settingsFile)
    for (const line of notes) context.print(`settings: ${line}`)
    if (notes.length === 0) context.print('settings: right')
    if (databaseUrl !== undefined) return checkServer(databaseUrl, config, context)
    if (!existsSync(databasePath)) {
      context.print(`database: ${databasePath} does not exist yet; serve or migrate creates it`)
      return 0
    }
    const unmodified = openUnmodified(databasePath, isServed(databasePath))
    const { sqlite, close } = unmodified
    try {
      const damage = findDamage(sqlite)
      // Version 0: an empty file, without secrets.
      const isEmpty = sqlite.pragma('user_version', { simple: true }) === 0
      const problem = isEmpty
        ? undefined
        : new LocalSecrets(sqlite, secretKey, databasePath).problem()
      if (problem !== undefined) damage.push(problem)
      const loss = isEmpty
        ? undefined
        : await new JournalMark(unmodified).loss({
            path: realpathSync(databasePath),
            databaseId: databaseId(unmodified),
          })
      if (loss !== undefined) context.print(`journal: ${loss}`)
      for (const line of damage) context.print(`database: ${line}`)
      if (damage.length === 0) context.print(`database: ${databasePath} is whole`)
      // Such claims lose at recognition, which is no damage.
      const notes = damage.length === 0 && !isEmpty ? await notesOf(unmodified, config) : []
      for (const line of notes) context.print(line)
      return damage.length === 0 && loss === undefined ? 0 : 1
    } finally {
      close()
    }
  },
}

/** The files are the business of the database server. */
async function checkServer(
  url: string,
  config: Config,
  context: CommandContext,
): Promise<ExitCode> {
  const { name, version, seen } = await readServer(url, async (store) => ({
    loss: await lossOf(store, config, context),
    notes: [...(await notesOf(store, config)), ...(await otherSettings(store, config))],
  }))
  const isCurrent = version === newestVersion
  context.print(
    isCurrent
      ? `database: ${name} has schema version ${version}`
      : `database: ${name} has schema version ${version}, this program needs ${newestVersion}; ` +
          'serve or migrate brings it there',
  )
  for (const line of seen?.notes ?? []) context.print(line)
  if (seen?.loss === undefined) return 0
  context.print(`journal: ${seen.loss}`)
  return 1
}

/** Tells what of this instance would be lost. */
async function lossOf(
  store: Pick<Store, 'statements' | 'db'>,
  config: Config,
  { hostName }: CommandContext,
): Promise<string | undefined> {
  const folder = dirname(config.databasePath)
  if (!existsSync(folder)) return undefined
  const path = join(realpathSync(folder), basename(config.databasePath))
  const databaseId = await databaseIdOf(store)
  return new JournalMark(store, instanceNameOf(config, hostName)).loss({ path, databaseId })
}

async function notesOf(
  store: Pick<Store, 'statements' | 'db'>,
  { exitCodes }: Config,
): Promise<readonly string[]> {
  return [
    ...(await brokenClaims(store)).map((line) => `ownership: ${line}`),
    ...(await numberNotes(store, exitCodes)).map((line) => `numbers: ${line}`),
  ]
}

/** No name of an instance has a space. */
const HERE = 'as set here'

/**
 * Against those of the instances that live; this one may be among them, with the settings of its
 * start.
 */
async function otherSettings(
  { statements }: Pick<Store, 'statements'>,
  config: Config,
): Promise<readonly string[]> {
  const living = await settingsOfLiving(statements)
  const differences = differencesOf(new Map([[HERE, commonSettings(config)], ...living]))
  return differences.map(({ setting, values }) => {
    const texts = Object.entries(values).map(
      ([instance, value]) => `${value} ${instance === HERE ? HERE : `at node ${instance}`}`,
    )
    return `settings: ${setting} must be the same on all nodes: ${texts.join(', ')}`
  })
}
