/** The console as `build.mjs` has made it. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Asset, readConsole } from '../../../control/console/console-files.ts'
import { settings } from '../../../engine/settings.ts'
import { denialReference } from '../../../schema/contracts/denials.ts'

/** Script and style together, as a browser gets them. */
const MAX_BYTES = 140_000
/** Loaded before the first screen: the frame, and nothing of a form, a chart or a screen. */
const MAX_FIRST_BYTES = 45_000

const guide = (): string => new TextDecoder().decode(readConsole()?.guide.plain)

test('the links of the guide lead to headings of it, or to pages elsewhere', () => {
  const ids = [...guide().matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
  expect(new Set(ids).size).toBe(ids.length)
  const links = [...guide().matchAll(/<a [^>]*href="([^"]+)"/g)].map(([, to = '']) => to)
  const own = new Set(['/docs', '/console', ...ids.map((id) => `#${id}`)])
  expect(links.filter((to) => !own.has(to) && !/^https?:/.test(to))).toEqual([])
  const headings = readFileSync('GUIDE.md', 'utf8').match(/^## .*$/gm) ?? []
  expect(guide().match(/<h2 /g)).toHaveLength(headings.length)
})

test('every picture of the guide is drawn', () => {
  const pictures = readFileSync('GUIDE.md', 'utf8').match(/^```mermaid$/gm) ?? []
  expect(pictures.length).toBeGreaterThan(10)
  expect(guide().match(/<svg role="img" aria-label="[^"]+"/g)).toHaveLength(pictures.length)
})

test('the guide has an anchor for each setting and each denial code', () => {
  const page = guide()
  const ids = [
    ...Object.values(settings).map(({ name }) => `setting-${name.toLowerCase()}`),
    ...denialReference.map(({ code }) => `denial-${code}`),
  ]
  expect(ids.filter((id) => !page.includes(`<li id="${id}">`))).toEqual([])
})

test('script and style together are small, and the page has nothing inline', () => {
  if (readConsole() === undefined) spawnSync('node', ['build.mjs'])
  const files = readConsole()
  const assets = files?.assets ?? new Map<string, Asset>()
  const pages = (files?.page ?? '') + guide()
  const first = namesIn(pages, /"\/console\/assets\/([^"]+)"/g)
  expect(sizeOf(first, assets)).toBeLessThan(MAX_FIRST_BYTES)
  expect(sizeOf(withParts(first, assets), assets)).toBeLessThan(MAX_BYTES)
  expect(files?.page).not.toMatch(/https?:/)
  for (const page of [files?.page ?? '', guide()]) {
    expect(page).not.toMatch(
      /<style|style=|<script(?![^>]*src="\/console\/assets\/(?:console|guide)-\w+\.js")/,
    )
    const names = namesIn(page, /"\/console\/assets\/([^"]+)"/g)
    expect(names.length).toBeGreaterThanOrEqual(3)
    expect([...assets.keys()]).toEqual(expect.arrayContaining([...names]))
  }
})

test('who has signed in is sent the screens at once, and they come with nothing that is missing', () => {
  const files = readConsole()
  const assets = files?.assets ?? new Map<string, Asset>()
  const [script, ...parts] = namesIn(
    files?.signedInPage ?? '',
    /(?:src|href)="\/console\/assets\/([^"]+\.js)"/g,
  )
  const screens = parts.filter((name) =>
    textOf(assets.get(name)).includes('No call is in progress.'),
  )
  expect([script, screens.length]).toEqual([expect.stringMatching(/^console-/), 1])
  const imported = namesIn(textOf(assets.get(screens[0] ?? '')), /from"\.\/([\w-]+\.js)"/g)
  expect(parts).toEqual(expect.arrayContaining([...imported]))
  expect(new Set(parts).size).toBe(parts.length)
})

test('charts and forms are no part of what is loaded first', () => {
  const files = readConsole()
  const assets = files?.assets ?? new Map<string, Asset>()
  const first = namesIn(files?.page ?? '', /"\/console\/assets\/([^"]+\.js)"/g)
  const all = withParts(first, assets)
  const holding = (text: string, names: readonly string[]) =>
    names.filter((name) => textOf(assets.get(name)).includes(text))
  // A word of the drawing library, and one of the forms.
  for (const text of ['u-over', '/openapi.json']) {
    expect(holding(text, all)).toHaveLength(1)
    expect(holding(text, first)).toEqual([])
  }
})

const textOf = (asset: Asset | undefined): string => new TextDecoder().decode(asset?.plain)

const namesIn = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map(([, name = '']) => name)

type Assets = ReadonlyMap<string, Asset>

/** With the parts that scripts load later; assets of earlier builds are there, too. */
function withParts(names: readonly string[], assets: Assets): readonly string[] {
  const found = new Set(names)
  for (const name of found)
    if (name.endsWith('.js'))
      for (const part of namesIn(textOf(assets.get(name)), /"\.\/([\w-]+\.js)"/g)) found.add(part)
  return [...found]
}

const sizeOf = (names: readonly string[], assets: Assets): number =>
  [...new Set(names)]
    .filter((name) => /\.(?:js|css)$/.test(name))
    .reduce((sum, name) => sum + (assets.get(name)?.br.length ?? 0), 0)
