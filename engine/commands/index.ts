/**
 * `tollgate <command>`: finds the command, reads its options, runs it, and says in one line why it
 * failed.
 */
import { parseArgs } from 'node:util'
import packageJson from '../../package.json' with { type: 'json' }
import { createFolderOf } from '../../schema/sqlite/open.ts'
import { DatabaseRefused } from '../../schema/sql/failure.ts'
import { readConfig, WrongSetting } from '../config.ts'
import { settings } from '../settings.ts'
import { backup, restore } from './backup.ts'
import { check } from './check.ts'
import {
  type Command,
  type ExitCode,
  type CommandInput,
  type CommandContext,
  WrongUsage,
} from './command.ts'
import { demo } from './demo/index.ts'
import { commandHelp, groupHelp, optionsOf, overview } from './help.ts'
import { keyCreate } from './key-create.ts'
import { mcp } from './mcp/index.ts'
import { migrateCommand } from './migrate.ts'
import { seed } from './seed.ts'
import { secretsReset } from './secrets-reset.ts'
import { serve } from './serve.ts'
import { settingNotes } from './settings-in-force.ts'
import { sipServer } from './sip-server.ts'
import { testPbx } from './test-pbx.ts'
import { userCreate, userPassword, userResetSecondFactor } from './user.ts'

/** In the order of the overview. The first is what `tollgate` alone does. */
const commands: readonly Command[] = [
  serve,
  demo,
  testPbx,
  migrateCommand,
  seed,
  keyCreate,
  userCreate,
  userPassword,
  userResetSecondFactor,
  backup,
  restore,
  check,
  secretsReset,
  sipServer,
  mcp,
]

export async function runCommandLine(
  words: readonly string[],
  context: CommandContext,
): Promise<ExitCode> {
  try {
    return await dispatch(words, context)
  } catch (error) {
    context.complain(`tollgate: ${settingOf(error, context)}${oneLine(error)}`)
    if (context.environment['LOG_LEVEL'] === 'debug' && error instanceof Error)
      context.complain(error.stack ?? '')
    return isWrongUsage(error) ? 2 : 1
  }
}

/** The setting that names the database which cannot be used. */
function settingOf(error: unknown, { environment }: CommandContext): string {
  if (!(error instanceof DatabaseRefused) || !error.message.startsWith('cannot use')) return ''
  return (environment['DATABASE_URL'] ?? '') === '' ? 'DATABASE_PATH: ' : 'DATABASE_URL: '
}

async function dispatch(words: readonly string[], context: CommandContext): Promise<ExitCode> {
  const [first = '', second = ''] = words
  if (first === 'help' && second !== '') return dispatch([...words.slice(1), '--help'], context)
  if (first === '--help' || first === '-h' || first === 'help')
    return answer(context, overview(commands))
  if (first === '--version') return answer(context, `tollgate ${packageJson.version}`)
  const command =
    commands.find(({ name }) => name === `${first} ${second}`) ??
    commands.find(({ name }) => name === first) ??
    (first === '' || first.startsWith('-') ? serve : undefined)
  if (command === undefined) return answerGroup(words, context)
  const isNamed = command.name.startsWith(first) && first !== ''
  const rest = words.slice(isNamed ? command.name.split(' ').length : 0)
  if (rest.includes('--help') || rest.includes('-h')) return answer(context, commandHelp(command))
  if (!reportsSettings.includes(command))
    for (const line of settingNotes(context.environment, context.settingsFile))
      context.complain(`tollgate: ${line}`)
  const input = readInput(command, rest)
  if (command.createsDatabase !== undefined) makeFolder(command, input, context)
  const isNewDatabase = input.options['new'] !== undefined
  return command.run(input, { ...context, isNewDatabase })
}

/**
 * Only for commands that may create a database: for others, a missing folder is a typing error, or
 * a disk that is not mounted.
 */
function makeFolder(
  { createsDatabase }: Command,
  { options }: CommandInput,
  { environment }: CommandContext,
): void {
  const { databasePath } = readConfig(environment)
  const isDefault = databasePath === settings.databasePath.whenUnset
  if (options['create'] !== undefined || (createsDatabase === 'always' && isDefault))
    createFolderOf(databasePath)
}

/** These commands report wrong settings themselves. */
const reportsSettings: readonly Command[] = [serve, demo, check]

/** `tollgate key --help`: the commands that begin with this word. */
function answerGroup(
  [first = '', second = '', ...rest]: readonly string[],
  context: CommandContext,
): ExitCode {
  const group = commands.filter(({ name }) => name.startsWith(`${first} `))
  if (group.length === 0) throw new WrongUsage(`unknown command "${first}"; see tollgate --help`)
  if ([second, ...rest].some((word) => word === '--help' || word === '-h'))
    return answer(context, groupHelp(first, group))
  const wrong =
    second === '' ? `${first} needs another word` : `unknown command "${first} ${second}"`
  throw new WrongUsage(`${wrong}; see tollgate ${first} --help`)
}

function answer(context: CommandContext, text: string): ExitCode {
  context.print(text)
  return 0
}

/** @throws {WrongUsage} */
function readInput(command: Command, words: readonly string[]): CommandInput {
  if (command.readsItsWords === true) return { argument: '', words, options: {} }
  const options = optionsOf(command)
  const parsed = parseWords(words, options)
  const [argument = '', ...more] = parsed.positionals
  if (argument === '' && command.argument !== undefined)
    throw new WrongUsage(`${command.name} needs ${command.argument}`)
  const surplus = command.argument === undefined ? argument : more[0]
  if (surplus !== undefined && surplus !== '')
    throw new WrongUsage(`${command.name} does not take "${surplus}"`)
  for (const [name, option] of Object.entries(options))
    if (option.isRequired === true && parsed.values[name] === undefined)
      throw new WrongUsage(`${command.name} needs --${name} ${option.value}`)
  return { argument, words, options: parsed.values }
}

function parseWords(words: readonly string[], options: ReturnType<typeof optionsOf>) {
  const types = Object.fromEntries(
    Object.entries(options).map(([name, { value }]) => {
      const type: 'boolean' | 'string' = value === undefined ? 'boolean' : 'string'
      return [name, { type }]
    }),
  )
  try {
    const parsed = parseArgs({ args: [...words], options: types, allowPositionals: true })
    const values = Object.fromEntries(
      Object.entries(parsed.values).map(([name, value]) => [name, value === true ? 'on' : value]),
    ) as CommandInput['options']
    return { values, positionals: parsed.positionals }
  } catch (error) {
    // Node's advice on quoting follows the first sentence.
    throw new WrongUsage(oneLine(error).split('. ', 1)[0])
  }
}

function oneLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.replaceAll(/\s*\n\s*/g, ' ').trim()
}

const isWrongUsage = (error: unknown): boolean =>
  error instanceof WrongUsage || error instanceof WrongSetting || error instanceof DatabaseRefused
