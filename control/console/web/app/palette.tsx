/**
 * The palette: finds anything, goes there, and opens forms, by the keyboard alone. It is a combobox
 * with a list below it (ARIA Authoring Practices): the focus stays in its field.
 */
import { useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { type ConsoleAnswer, get } from '../api/api.ts'
import { after } from '../api/browser.ts'
import { may, isGlobal, sessionEnded } from '../api/session.ts'
import type { SearchHit, ShownSettings, User } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { plural } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { go } from '../parts/router.ts'
import { Moment, Problem, Text } from '../parts/text.tsx'
import { paletteActions } from './palette-actions.ts'
import { type PaletteEntry, type PaletteGroup, groupsFor, searchedText } from './palette-entries.ts'
import { keepRecent, recentOf } from './recent.ts'
import type { Screen } from './screens.ts'

interface PaletteProps {
  readonly user: User
  readonly screens: readonly Screen[]
  readonly onClose: () => void
}

/** A person types a letter in about so long. */
const PAUSE_MS = 120
/** As many as the API takes. */
const MAX_TEXT = 100

export function Palette({ user, screens, onClose }: PaletteProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const text = useSignal('')
  const chosen = useSignal(0)
  /** Enter was pressed before the answer to the text had come. */
  const isAwaited = useSignal<'here' | 'apart' | undefined>(undefined)
  const actions = useRef(paletteActions())
  const recent = useRef(recentOf(user.id))
  const settings = useResource('palette settings', loadSettings)
  const guide = useResource('palette guide', loadGuide)
  const { found, problem, isBusy } = useFound(() =>
    searchedText(actions.current, text.value.trim()),
  )
  const groups = useComputed(() =>
    groupsFor(
      text.value.trim(),
      {
        actions: actions.current,
        recent: recent.current,
        screens: screens.map(entryOfScreen),
        settings: settings.data.value ?? [],
        guide: guide.data.value ?? [],
      },
      found.value,
    ),
  )
  const entries = useComputed(() => groups.value.flatMap((group) => group.entries))
  useEffect(() => dialog.current?.showModal(), [])

  const choose = (entry: PaletteEntry | undefined, isApart: boolean): void => {
    if (entry === undefined) return
    if (!entry.id.startsWith('do ')) keepRecent(user.id, entry)
    if (isApart) return void window.open(entry.to, '_blank', 'noopener')
    dialog.current?.close()
    if (entry.to.startsWith('/console')) go(entry.to)
    else location.assign(entry.to)
  }
  // The first entry may still be that of an earlier text.
  const enter = (isApart: boolean): void => {
    if (isBusy.value && chosen.value === 0) isAwaited.value = isApart ? 'apart' : 'here'
    else choose(entries.value[chosen.value], isApart)
  }
  useSignalEffect(() => {
    if (isBusy.value || isAwaited.value === undefined) return
    const isApart = isAwaited.peek() === 'apart'
    isAwaited.value = undefined
    choose(entries.peek()[chosen.peek()], isApart)
  })
  const onKey = (event: KeyboardEvent): void => {
    if (event.isComposing) return
    const to = movedBy(event, chosen.value, groups.value)
    if (to !== undefined) chosen.value = to
    else if (event.key === 'Enter') enter(event.ctrlKey || event.metaKey)
    else return
    event.preventDefault()
  }
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Find anything"
      onClose={onClose}
      onClick={(event) => {
        if (event.target === event.currentTarget) event.currentTarget.close()
      }}
    >
      <input
        type="text"
        role="combobox"
        aria-label="Find anything"
        aria-expanded={entries.value.length > 0}
        aria-controls="palette-list"
        aria-autocomplete="list"
        {...(entries.value.length > 0 && { 'aria-activedescendant': `found-${chosen.value}` })}
        placeholder="A name, a number, a Call-ID, or what to do: top up acme"
        autoComplete="off"
        spellcheck={false}
        maxLength={MAX_TEXT}
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value
          chosen.value = 0
          isAwaited.value = undefined
        }}
        onKeyDown={onKey}
      />
      <Problem message={problem.value} />
      <Found groups={groups.value} chosen={chosen.value} onChoose={choose} />
      <p role="status" class="hint">
        {countText(entries.value.length, text.value.trim(), isBusy.value)}
      </p>
    </dialog>
  )
}

const countText = (count: number, text: string, isBusy: boolean): string =>
  count > 0 || text === ''
    ? `${plural(count, 'result')}: arrows and Enter choose, Tab goes to the next group`
    : isBusy
      ? 'Looking …'
      : 'Nothing has this name or number.'

interface FoundProps {
  readonly groups: readonly PaletteGroup[]
  readonly chosen: number
  readonly onChoose: (entry: PaletteEntry, isApart: boolean) => void
}

function Found({ groups, chosen, onChoose }: FoundProps) {
  const list = useRef<HTMLDivElement>(null)
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' })
  }, [chosen, groups])
  let index = -1
  return (
    <div id="palette-list" role="listbox" aria-label="Results" ref={list}>
      {groups.map(({ name, entries }) => (
        <div key={name} role="group" aria-label={name}>
          <h3 aria-hidden="true">{name}</h3>
          {entries.map((entry) => {
            index += 1
            return (
              <div
                key={entry.id}
                id={`found-${index}`}
                role="option"
                aria-selected={index === chosen}
                onClick={(event) => onChoose(entry, event.ctrlKey || event.metaKey)}
              >
                <Text value={entry.title} max={120} />{' '}
                <small>
                  {entry.at !== null && <Moment at={entry.at} isShort />}{' '}
                  {entry.detail !== '' && <Text value={entry.detail} max={120} />}
                </small>
              </div>
            )
          })}
        </div>
      ))}
    </div>
  )
}

/** Where a key goes in the list; undefined: it is not one that moves. */
function movedBy(
  { key, shiftKey }: KeyboardEvent,
  chosen: number,
  groups: readonly PaletteGroup[],
): number | undefined {
  const count = groups.reduce((sum, { entries }) => sum + entries.length, 0)
  if (count === 0) return key === 'Tab' ? 0 : undefined
  switch (key) {
    case 'ArrowDown':
      return (chosen + 1) % count
    case 'ArrowUp':
      return (chosen + count - 1) % count
    case 'PageDown':
      return Math.min(count - 1, chosen + PAGE)
    case 'PageUp':
      return Math.max(0, chosen - PAGE)
    case 'Tab': {
      const starts: number[] = []
      let start = 0
      for (const { entries } of groups) {
        starts.push(start)
        start += entries.length
      }
      const before = starts.findLast((each) => each < chosen) ?? starts.at(-1)
      return shiftKey ? before : (starts.find((each) => each > chosen) ?? 0)
    }
    default:
      return undefined
  }
}

const PAGE = 8

/** Asks the server, a moment after the last letter; an answer to an earlier text is dropped. */
function useFound(wanted: () => string) {
  const found = useSignal<readonly SearchHit[]>([])
  const problem = useSignal<string | undefined>(undefined)
  /** The text to which `found` belongs. */
  const answered = useSignal('')
  const text = useComputed(wanted)
  const isBusy = useComputed(() => answered.value !== text.value)
  const { value: asked } = text
  useEffect(() => {
    if (asked === '') {
      found.value = []
      answered.value = ''
      return undefined
    }
    let isCurrent = true
    const ask = async (): Promise<void> => {
      const answer = await get<readonly SearchHit[]>(`/search?q=${encodeURIComponent(asked)}`)
      if (!isCurrent) return
      if (answer.kind === 'signed-out') return sessionEnded()
      problem.value = answer.kind === 'failed' ? answer.message : undefined
      found.value = answer.kind === 'ok' ? answer.data : []
      answered.value = asked
    }
    const stop = after(PAUSE_MS, () => void ask())
    return () => {
      isCurrent = false
      stop()
    }
  }, [asked])
  return { found, problem, isBusy }
}

const entryOfScreen = ({ name, title, group }: Screen): PaletteEntry => ({
  id: `screen ${name}`,
  title,
  detail: group ?? '',
  at: null,
  to: pathOf(name),
})

type Loaded = ConsoleAnswer<readonly PaletteEntry[]>

const none: Loaded = { kind: 'ok', data: [], meta: undefined }

async function loadSettings(): Promise<Loaded> {
  if (!may('settings:view') || !isGlobal()) return none
  const answer = await get<ShownSettings>('/settings')
  if (answer.kind !== 'ok') return answer
  const data = answer.data.settings.map(({ name, meaning }): PaletteEntry => ({
    id: `setting ${name}`,
    title: name,
    detail: meaning,
    at: null,
    to: pathOf('settings', undefined, { q: name }),
  }))
  return { ...answer, data }
}

/** The headings of the guide, which this server serves as a page. */
async function loadGuide(): Promise<Loaded> {
  try {
    const response = await fetch('/guide', { headers: { Accept: 'text/html' } })
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    const data = [...page.querySelectorAll('h2[id], h3[id]')].map((heading): PaletteEntry => {
      for (const anchor of heading.querySelectorAll('a')) anchor.remove()
      const title = heading.textContent.trim()
      return { id: `guide ${heading.id}`, title, detail: '', at: null, to: `/guide#${heading.id}` }
    })
    return { kind: 'ok', data, meta: undefined }
  } catch {
    return none
  }
}
