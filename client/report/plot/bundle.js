// node bundle.js FILE: writes exports.js and all that it needs as one script, after the licenses of its packages.
import {build} from 'esbuild';
import {readFileSync, writeFileSync} from 'node:fs';

const {metafile, outputFiles} = await build({
  entryPoints: ['exports.js'], bundle: true, minify: true, format: 'iife', globalName: 'Plot', target: 'es2022',
  legalComments: 'none', metafile: true, write: false,
});
const used = Object.entries(Object.values(metafile.outputs)[0].inputs).filter(([, {bytesInOutput}]) => bytesInOutput > 0);
const folders = new Set(used.map(([path]) => path.match(/^node_modules\/(@[^/]+\/)?[^/]+/)?.[0]).filter(Boolean));
const owner = /^Copyright .*\n+/gm;
const owned = new Map(); // terms: the packages under them
for (const folder of [...folders].sort()) {
  const {name, version} = JSON.parse(readFileSync(`${folder}/package.json`));
  const license = readFileSync(`${folder}/LICENSE`, 'utf8').trim();
  const terms = license.replace(owner, '').trim();
  owned.set(terms, [...(owned.get(terms) ?? []), `${name} ${version}: ${license.match(owner).join('').trim()}`]);
}
const notes = [...owned].map(([terms, packages]) => `${packages.join('\n')}\n\n${terms}`).join('\n\n');
writeFileSync(process.argv[2], `/*! Made by \`./dev plot\`.\n\n${notes}\n*/\n${outputFiles[0].text}`);
