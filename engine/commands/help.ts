/** The texts of `--help`. */
import { settingGroups, settings } from '../settings.ts'
import type { Command, Option } from './command.ts'

export function overview(commands: readonly Command[]): string {
  const rows = commands.map(
    ({ name, argument = '', summary }) => [`${name} ${argument}`, summary] as const,
  )
  return [
    'tollgate: a telephony platform in one process. Without a command it serves.',
    '',
    ...table(rows),
    '',
    'tollgate <command> --help tells more. Settings come from the environment and from .env:',
    'see tollgate serve --help.',
  ].join('\n')
}

/** The options of the command, and those of its kind. */
export const optionsOf = ({
  options,
  createsDatabase,
}: Command): Readonly<Record<string, Option>> =>
  createsDatabase === undefined
    ? (options ?? {})
    : { ...options, create: { meaning: createMeanings[createsDatabase] } }

const createMeanings = {
  always: 'Creates the folder of DATABASE_PATH.',
  'with --create': 'Creates the database and its folder when they are missing.',
} as const

/** The commands of one first word, such as `key`. */
export function groupHelp(first: string, commands: readonly Command[]): string {
  const rows = commands.map((command) => [callOf(command), command.summary] as const)
  return [
    `tollgate ${first} …`,
    '',
    ...table(rows),
    '',
    `tollgate ${first} <word> --help tells more.`,
  ].join('\n')
}

export function commandHelp(command: Command): string {
  const options = Object.entries(optionsOf(command)).map(
    ([name, { value = '', meaning }]) => [`--${name} ${value}`.trim(), meaning] as const,
  )
  return [
    `tollgate ${callOf(command)}`,
    '',
    command.summary,
    ...(options.length === 0 ? [] : ['', 'Options:', ...table(options)]),
    ...(command.details === undefined ? [] : ['', command.details()]),
  ].join('\n')
}

/** Every setting with its default, its allowed values, and its meaning, in groups. */
export function settingsHelp(): string {
  const lines = Object.entries(settings).flatMap(([key, { name, whenUnset, allowed, meaning }]) => {
    const title = settingGroups[key]
    return [
      ...(title === undefined ? [] : ['', `${title}:`]),
      `  ${name}\n      ${meaning}\n      default: ${whenUnset}; allowed: ${allowed}`,
    ]
  })
  return ['Settings (environment, or .env in the working directory):', ...lines].join('\n')
}

function callOf(command: Command): string {
  const required = Object.entries(command.options ?? {})
    .filter(([, option]) => option.isRequired === true)
    .map(([name, option]) => `--${name} ${option.value}`)
  return [command.name, command.argument, ...required].filter(Boolean).join(' ')
}

function table(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
