/**
 * The entries of the palette beside those that the server finds: screens, actions, settings,
 * sections of the guide, and earlier choices; and which of them match a text, in which order.
 */
import type { SearchHit } from '../api/views.ts'

export interface PaletteEntry {
  readonly id: string
  readonly title: string
  readonly detail: string
  /** When a call began. */
  readonly at: string | null
  readonly to: string
}

export interface PaletteGroup {
  readonly name: string
  readonly entries: readonly PaletteEntry[]
}

/** An action, which opens a form: a person confirms there. */
export interface PaletteAction {
  /** The words to type. */
  readonly verbs: readonly string[]
  /** The kinds of things whose name follows the verb; absent: any text follows it. */
  readonly of?: string | readonly string[]
  /** Whether a thing that was found is meant. */
  readonly isMeant?: (hit: SearchHit) => boolean
  /** The form of that text; absent: any. */
  readonly pattern?: RegExp
  /** `Top up Acme` */
  readonly title: (rest: string) => string
  readonly to: (rest: string, hit: SearchHit | undefined) => string
}

/** The verb with which the text begins, and what follows it. */
function actionIn(
  actions: readonly PaletteAction[],
  text: string,
): { readonly action: PaletteAction; readonly rest: string } | undefined {
  const small = text.toLowerCase()
  const begun = actions.flatMap((action) =>
    action.verbs
      .filter((verb) => small === verb || small.startsWith(`${verb} `))
      .map((verb) => ({ action, verb })),
  )
  const longest = begun.toSorted((one, other) => other.verb.length - one.verb.length)[0]
  if (longest === undefined) return undefined
  return { action: longest.action, rest: text.slice(longest.verb.length).trim() }
}

/** The text for the server. */
export const searchedText = (actions: readonly PaletteAction[], text: string): string => {
  const found = actionIn(actions, text)
  return found?.action.of === undefined ? text : found.rest
}

const MAX_OF_GROUP = 5

interface Known {
  readonly actions: readonly PaletteAction[]
  readonly screens: readonly PaletteEntry[]
  readonly settings: readonly PaletteEntry[]
  readonly guide: readonly PaletteEntry[]
  readonly recent: readonly PaletteEntry[]
}

/** The groups for a text, the best first; without one, what was chosen last, and the screens. */
export function groupsFor(
  text: string,
  known: Known,
  found: readonly SearchHit[],
): readonly PaletteGroup[] {
  if (text === '')
    return [
      { name: 'Recent', entries: known.recent },
      { name: 'Screens', entries: known.screens },
    ].filter(({ entries }) => entries.length > 0)
  const recent = matching(known.recent, text).slice(0, MAX_RECENT)
  const isRecent = new Set(recent.map(({ to }) => to))
  const others: readonly PaletteGroup[] = [
    ...[...new Set(found.map(({ kind }) => kind))].map((kind) => ({
      name: groupName(kind),
      entries: found.filter((hit) => hit.kind === kind).map(entryOf),
    })),
    { name: 'Screens', entries: matching(known.screens, text) },
    { name: 'Settings', entries: matching(known.settings, text) },
    { name: 'Guide', entries: matching(known.guide, text) },
  ].map(({ name, entries }) => ({
    name,
    entries: entries.filter(({ to }) => !isRecent.has(to)).slice(0, MAX_OF_GROUP),
  }))
  const words = searchedText(known.actions, text)
  return [
    { name: 'Actions', entries: actionEntries(known.actions, text, found) },
    { name: 'Recent', entries: recent },
    ...others.toSorted((one, other) => bestOf(one, words) - bestOf(other, words)),
  ].filter(({ entries }) => entries.length > 0)
}

const MAX_RECENT = 3

const entryOf = (hit: SearchHit): PaletteEntry => ({
  id: `${hit.kind} ${hit.id}`,
  title: hit.title,
  detail: hit.detail,
  at: hit.at,
  to: hit.path,
})

function actionEntries(
  actions: readonly PaletteAction[],
  text: string,
  found: readonly SearchHit[],
): readonly PaletteEntry[] {
  const begun = actionIn(actions, text)
  const made = (action: PaletteAction, rest: string, hit?: SearchHit): PaletteEntry => ({
    id: `do ${action.verbs[0]} ${hit?.id ?? rest}`,
    title: action.title(hit?.title ?? rest),
    detail: hit?.detail ?? '',
    at: hit?.at ?? null,
    to: action.to(rest, hit),
  })
  if (begun !== undefined) {
    const { action, rest } = begun
    if (action.of === undefined)
      return action.pattern?.test(rest) === false ? [] : [made(action, rest)]
    return found
      .filter(({ kind }) => [action.of].flat().includes(kind))
      .filter((hit) => action.isMeant?.(hit) !== false)
      .slice(0, MAX_OF_GROUP)
      .map((hit) => made(action, rest, hit))
  }
  // The verb is not typed whole yet: what is named takes a form of its own, the rest a longer text.
  return actions
    .filter(({ of, pattern }) => of === undefined && pattern?.test('') !== false)
    .filter(({ verbs }) => verbs.some((verb) => rankOfTitle(verb, text) < NONE))
    .slice(0, MAX_OF_GROUP)
    .map((action) => made(action, ''))
}

const NONE = 9

/** Each word of the text begins a word of the title, or else is in it. The lower, the better. */
export function rankOfTitle(title: string, text: string): number {
  const name = title.toLowerCase()
  const wanted = text.toLowerCase().trim()
  if (name === wanted) return 0
  if (name.startsWith(wanted)) return 1
  const words = name.split(/[^\p{L}\p{N}]+/u)
  const parts = wanted.split(/\s+/)
  if (parts.every((part) => words.some((word) => word.startsWith(part)))) return 2
  return parts.every((part) => name.includes(part)) ? 4 : NONE
}

/** A text in what stands beside the title counts less. */
const rankOfEntry = ({ title, detail }: PaletteEntry, text: string): number =>
  Math.min(rankOfTitle(title, text), rankOfTitle(`${title} ${detail}`, text) + 3)

const matching = (entries: readonly PaletteEntry[], text: string): readonly PaletteEntry[] =>
  entries
    .map((entry) => ({ entry, rank: rankOfEntry(entry, text) }))
    .filter(({ rank }) => rank < NONE)
    .toSorted((one, other) => one.rank - other.rank)
    .map(({ entry }) => entry)

/** The rank of its best entry: hits of the server match wherever the text stands in them. */
const bestOf = ({ entries }: PaletteGroup, text: string): number =>
  Math.min(NONE, ...entries.map((entry) => rankOfEntry(entry, text)))

const groupNames: Readonly<Record<string, string>> = {
  call: 'Calls',
  agent: 'AI agents',
  dispatcher_set: 'Dispatcher sets',
  phone_number: 'Numbers',
  node: 'PBX nodes',
  stir_key: 'Signing keys',
  stir_authority: 'Signing authorities',
}

/** `outbound_route`: Outbound routes. */
const groupName = (kind: string): string => {
  const words = kind.replaceAll('_', ' ')
  return groupNames[kind] ?? `${words.charAt(0).toUpperCase()}${words.slice(1)}s`
}
