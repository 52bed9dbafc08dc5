/** The console as `build.mjs` has made it. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readConsole } from '../../../control/console/console-files.ts'
import { settings } from '../../../engine/settings.ts'
import { denialReference } from '../../../schema/contracts/denials.ts'

/** Script and style together, as a browser gets them. */
const MAX_BYTES = 120_000

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
  const pages = (files?.page ?? '') + guide()
  // Assets of earlier builds are there, too.
  const parts = [...(files?.assets ?? [])].filter(([name]) => /\.(?:js|css)$/.test(name))
  const compressed = parts.filter(([name]) => pages.includes(name)).map(([, { br }]) => br.length)
  expect(compressed).toHaveLength(3)
  expect(compressed.reduce((sum, size) => sum + size, 0)).toBeLessThan(MAX_BYTES)
  expect(files?.page).not.toMatch(/https?:/)
  for (const page of [files?.page ?? '', guide()]) {
    expect(page).not.toMatch(
      /<style|style=|<script(?![^>]*src="\/console\/assets\/(?:console|guide)-\w+\.js")/,
    )
    const names = [...page.matchAll(/"\/console\/assets\/([^"]+)"/g)].map(([, name]) => name)
    expect(names).toHaveLength(3)
    expect([...(files?.assets.keys() ?? [])]).toEqual(expect.arrayContaining(names))
  }
})
