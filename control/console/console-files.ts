/**
 * The files of the console as `build.mjs` has made them, read once: the page, the guide, and
 * assets, in three encodings.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface ConsoleFiles {
  /** HTML. */
  readonly page: string
  /** The same for browsers that have a session: they load the screens beside the frame. */
  readonly signedInPage: string
  /** GUIDE.md as HTML. */
  readonly guide: Asset
  /**
   * By name, which contains a hash of the content; those of earlier builds too, for pages that are
   * open (D321).
   */
  readonly assets: ReadonlyMap<string, Asset>
}

export interface Asset {
  readonly contentType: string
  readonly plain: Uint8Array<ArrayBuffer>
  readonly br: Uint8Array<ArrayBuffer>
  readonly gzip: Uint8Array<ArrayBuffer>
}

const contentTypes: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  html: 'text/html; charset=utf-8',
}

/** The files are beside the bundle; for a run from the sources, in the output of the last build. */
const folders = ['./console', '../../dist/console'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)

const pages = ['index.html', 'signed-in.html']

/** Undefined: the console has not been built. */
export function readConsole(): ConsoleFiles | undefined {
  const folder = folders.find((place) => pages.every((page) => existsSync(join(place, page))))
  return folder === undefined ? undefined : readConsoleOf(folder)
}

export function readConsoleOf(folder: string): ConsoleFiles {
  const assets = join(folder, 'assets')
  const names = readdirSync(assets).filter((name) => /\.(?:js|css|svg)$/.test(name))
  return {
    page: readFileSync(join(folder, 'index.html'), 'utf8'),
    signedInPage: readFileSync(join(folder, 'signed-in.html'), 'utf8'),
    guide: readAsset(join(folder, 'guide.html')),
    assets: new Map(names.map((name) => [name, readAsset(join(assets, name))])),
  }
}

function readAsset(path: string): Asset {
  const read = (ending: string) => new Uint8Array(readFileSync(path + ending))
  return {
    contentType: contentTypes[path.slice(path.lastIndexOf('.') + 1)] ?? '',
    plain: read(''),
    br: read('.br'),
    gzip: read('.gz'),
  }
}
