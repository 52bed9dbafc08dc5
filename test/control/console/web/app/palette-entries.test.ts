import { expect, test } from 'vitest'
import {
  type PaletteEntry,
  groupsFor,
  type PaletteAction,
  rankOfTitle,
  searchedText,
} from '../../../../../control/console/web/app/palette-entries.ts'

const entry = (title: string, to = `/console/${title}`): PaletteEntry => ({
  id: title,
  title,
  detail: '',
  at: null,
  to,
})

const actions: readonly PaletteAction[] = [
  {
    verbs: ['top up', 'topup'],
    of: 'customer',
    title: (name) => `Top up ${name}`,
    to: (_, hit) => `/console/customers/${hit?.id}?do=top-up`,
  },
  {
    verbs: ['calls of'],
    of: ['customer', 'carrier'],
    title: (name) => `Calls of ${name}`,
    to: (_, hit) => `/console/history?${hit?.kind}=${hit?.id}`,
  },
  {
    verbs: ['block'],
    pattern: /^\d*$/,
    title: (prefix) => `Block ${prefix}`,
    to: (prefix) => `/console/spend-guards?new=1&prefix=${prefix}`,
  },
]

const hit = (kind: string, id: string, title: string, path = `/console/${kind}/${id}`) => ({
  ...{ kind, id, title, path },
  detail: '',
  at: null,
})

const known = {
  actions,
  screens: [entry('Carriers'), entry('Customers')],
  settings: [entry('DRAIN_SECONDS')],
  guide: [entry('First trunk')],
  recent: [entry('Acme', '/console/customer/7'), entry('Zeta')],
}

const inWords = (text: string, found: Parameters<typeof groupsFor>[2] = []) =>
  groupsFor(text, known, found).flatMap(({ name, entries }) =>
    entries.map(({ title }) => `${name}: ${title}`),
  )

test('without a text there is what was chosen last, and then the screens', () => {
  expect(inWords('')).toEqual([
    'Recent: Acme',
    'Recent: Zeta',
    'Screens: Carriers',
    'Screens: Customers',
  ])
})

test('what matches and was chosen before comes first, and once', () => {
  const found = [hit('customer', '7', 'Acme'), hit('customer', '8', 'Acme Two')]
  expect(inWords('acm', found)).toEqual(['Recent: Acme', 'Customers: Acme Two'])
})

test('a verb asks the server for what follows it, and makes an action of each thing of its kind', () => {
  expect(searchedText(actions, 'Top up acme')).toBe('acme')
  expect(searchedText(actions, 'top uptown')).toBe('top uptown')
  expect(searchedText(actions, 'block 1900')).toBe('block 1900')
  const found = [hit('customer', '7', 'Acme Two'), hit('carrier', '1', 'Acme carrier')]
  const [group] = groupsFor('top up acme', { ...known, recent: [] }, found)
  expect(group?.entries.map(({ title, to }) => [title, to])).toEqual([
    ['Top up Acme Two', '/console/customers/7?do=top-up'],
  ])
})

test('an action with a text of its own needs no thing, and takes no other text', () => {
  expect(inWords('block 1900')).toContain('Actions: Block 1900')
  expect(inWords('block acme')).toEqual([])
  expect(inWords('blo')).toContain('Actions: Block ')
})

test('the group with the best match comes first', () => {
  const found = [hit('customer', '1', 'Old trunk'), hit('carrier', '2', 'trunk')]
  expect(inWords('trunk', found).map((each) => each.split(':')[0])).toEqual([
    'Carriers',
    'Customers',
    'Guide',
  ])
  expect(rankOfTitle('Outbound routes', 'rou out')).toBeLessThan(rankOfTitle('Trout', 'rou'))
})

test('an action may be about things of several kinds, and about no other', () => {
  const found = [
    hit('carrier', '2', 'Acme Carrier'),
    hit('node', '3', 'acme'),
    hit('customer', '1', 'Acme'),
  ]
  expect(inWords('calls of acme', found).filter((words) => words.startsWith('Actions'))).toEqual([
    'Actions: Calls of Acme Carrier',
    'Actions: Calls of Acme',
  ])
})
