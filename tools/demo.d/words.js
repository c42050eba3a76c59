// counts and prints the words of a text, with a wait for an upstream

import fs from 'fs';

function count(text) {
    const counts = {};

    text.toLowerCase().split(/[^a-z]+/).forEach((w) => {
        counts[w] = (counts[w] || 0) + 1;
    });

    return counts;
}

async function handler(r) {
    const text = fs.readFileSync(r.variables.document_root + '/text.txt')
                 .toString().slice(0, 10000);
    const counts = count(text);
    const words = Object.keys(counts).sort((a, b) => counts[b] - counts[a]);

    await r.subrequest('/upstream/index.html');

    r.return(200, words.map((w) => `${counts[w]} ${w}`).join('\n') + '\n'
                  + text);
}

export default { handler };
